package kafkalab;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.avro.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.errors.RetriableException;

/** A schema registry, by its REST API. It's asked once for each schema: what an id stands for never changes. */
class Registry {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    // HTTP/1.1: otherwise the first request also asks the server to change to HTTP/2.
    private final HttpClient client =
        HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(PATIENCE).build();
    private final String url;
    private final Map<String, Map<Schema, Integer>> ids = new HashMap<>(); // by subject
    private final Map<Integer, Schema> schemas = new HashMap<>();

    Registry(String url) {
        this.url = url;
    }

    /** The schema's id. If the subject has another schema, the registry judges whether this one is compatible. */
    int register(String subject, Schema schema) {
        return ids.computeIfAbsent(subject, name -> new HashMap<>()).computeIfAbsent(schema, fresh -> {
            String body = JSON.createObjectNode().put("schema", fresh.toString()).toString();
            return ask("/subjects/" + subject + "/versions", BodyPublishers.ofString(body), "POST").get("id").asInt();
        });
    }

    Schema schema(int id) {
        return schemas.computeIfAbsent(id, unknown ->
            new Schema.Parser().parse(ask("/schemas/ids/" + id, BodyPublishers.noBody(), "GET").get("schema").asText()));
    }

    /** Connect may try again after a RetriableException (`errors.retry.timeout`). After any other one, the record is bad. */
    private JsonNode ask(String path, HttpRequest.BodyPublisher body, String method) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + path)).timeout(PATIENCE)
            .header("Content-Type", "application/vnd.schemaregistry.v1+json").method(method, body).build();
        try {
            HttpResponse<String> answer = client.send(request, BodyHandlers.ofString());
            if (answer.statusCode() >= 500) {
                throw new RetriableException("the schema registry failed: " + answer.body());
            }
            if (answer.statusCode() >= 400) {
                throw new DataException("the schema registry refused (" + answer.statusCode() + "): " + answer.body());
            }
            return JSON.readTree(answer.body());
        } catch (IOException error) {
            throw new RetriableException("no schema registry answers at " + url, error);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new ConnectException("stopped while it asked the schema registry", stopped);
        }
    }
}
