package kafkalab;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.eclipse.paho.client.mqttv3.IMqttDeliveryToken;
import org.eclipse.paho.client.mqttv3.MqttAsyncClient;
import org.eclipse.paho.client.mqttv3.MqttCallback;
import org.eclipse.paho.client.mqttv3.MqttConnectOptions;
import org.eclipse.paho.client.mqttv3.MqttException;
import org.eclipse.paho.client.mqttv3.MqttMessage;
import org.eclipse.paho.client.mqttv3.MqttTopic;
import org.eclipse.paho.client.mqttv3.persist.MemoryPersistence;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads messages of an MQTT broker into a topic of Kafka: with QoS 0 at most once, with QoS 1 at least once. */
public class MqttSourceConnector extends SourceConnector {
    private static final Logger LOG = LoggerFactory.getLogger(MqttSourceConnector.class);

    private static final ConfigDef CONFIG = new ConfigDef()
        .define("mqtt.url", Type.STRING, ConfigDef.NO_DEFAULT_VALUE,
            valid("tcp://HOST:PORT or ssl://HOST:PORT", url -> new MqttConnectOptions().setServerURIs(new String[] {url})),
            Importance.HIGH, "Where the MQTT broker listens.")
        .define("mqtt.topics", Type.STRING, ConfigDef.NO_DEFAULT_VALUE,
            // MQTT allows a comma, but whoever writes one here means two filters, and would get no messages. ## is invalid.
            valid("one MQTT topic without a comma; in it + stands for one level, and # at its end for all further ones",
                filter -> MqttTopic.validate(filter.replace(",", "##"), true)),
            Importance.HIGH, "Which MQTT topics to read: one filter.")
        .define("mqtt.qos", Type.INT, 1, ConfigDef.Range.between(0, 1),
            Importance.HIGH, "With 0 a message may be lost. With 1 it's sent again until it is in Kafka.")
        .define("mqtt.client.id", Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(),
            Importance.HIGH, "The name under which the MQTT broker keeps filter and messages while the connector is away (QoS 1).")
        .define("mqtt.user", Type.STRING, null, Importance.MEDIUM, "As whom to log in, with mqtt.password.")
        .define("mqtt.password", Type.PASSWORD, "", Importance.MEDIUM, "The password of mqtt.user.")
        .define("mqtt.truststore.location", Type.STRING, null, Importance.MEDIUM, "Whom to trust with ssl://; Java's own by default.")
        .define("mqtt.truststore.password", Type.PASSWORD, "", Importance.MEDIUM, "The password of that file.")
        .define("mqtt.timeout.ms", Type.LONG, 60_000L, ConfigDef.Range.atLeast(1),
            Importance.LOW, "How long to try to reach the MQTT broker before the task fails.")
        .define("topic", Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(),
            Importance.HIGH, "The topic of Kafka to write to.");

    private Map<String, String> settings;

    private static ConfigDef.Validator valid(String expected, Consumer<String> check) {
        return ConfigDef.LambdaValidator.with((name, value) -> {
            try {
                check.accept((String) value);
            } catch (RuntimeException error) {
                throw new ConfigException(name, value, "expected " + expected);
            }
        }, () -> expected);
    }

    @Override public String version() { return "1"; }
    @Override public ConfigDef config() { return CONFIG; }
    @Override public void start(Map<String, String> settings) { this.settings = settings; }
    @Override public void stop() { }
    @Override public Class<? extends Task> taskClass() { return MqttSourceTask.class; }

    /** One task, whatever the limit: two would get the same messages. */
    @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(settings); }

    /** A record on its way to Kafka, and how to acknowledge the message that it was. */
    private static class Arrived extends SourceRecord {
        private final MqttAsyncClient client;
        private final MqttMessage message;

        /** There is no offset for Connect to keep: the MQTT broker remembers what wasn't acknowledged. */
        Arrived(String topic, String mqttTopic, MqttMessage message, MqttAsyncClient client) {
            super(null, null, topic, Schema.STRING_SCHEMA, mqttTopic, Schema.BYTES_SCHEMA, message.getPayload());
            this.client = client;
            this.message = message;
        }

        /** To the very connection it came by: on a later one the same number may stand for another message. */
        void acknowledge() {
            try {
                client.messageArrivedComplete(message.getId(), message.getQos());
            } catch (MqttException lost) {
                LOG.info("not acknowledged, so it will come again: {}", lost.getMessage());
            }
        }
    }

    public static class MqttSourceTask extends SourceTask {
        private final BlockingQueue<Arrived> arrived = new LinkedBlockingQueue<>(10_000);
        private AbstractConfig config;
        private MqttAsyncClient client;
        private long deadline; // by which there must be a connection again

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> settings) {
            config = new AbstractConfig(CONFIG, settings);
            postpone();
        }

        /** Connect asks for records again and again, and this waits for one for half a second. */
        @Override public List<SourceRecord> poll() throws InterruptedException {
            if (client != null && client.isConnected()) {
                postpone();
            } else {
                tryToConnect();
            }
            List<SourceRecord> records = new ArrayList<>();
            Arrived first = arrived.poll(500, TimeUnit.MILLISECONDS);
            if (first != null) {
                records.add(first);
                arrived.drainTo(records, 499);
                LOG.debug("{} messages for Kafka", records.size());
            }
            return records;
        }

        /** Kafka has acknowledged a record (or a transform left it out). Not before that, the message is acknowledged. */
        @Override public void commitRecord(SourceRecord record, RecordMetadata metadata) { ((Arrived) record).acknowledge(); }
        @Override public void stop() { disconnect(); }

        private void postpone() { deadline = System.currentTimeMillis() + config.getLong("mqtt.timeout.ms"); }

        private void tryToConnect() {
            disconnect();
            try {
                connect();
            } catch (MqttException error) {
                disconnect();
                String problem = "no MQTT broker lets us in at " + config.getString("mqtt.url") + ": " + error.getMessage();
                LOG.warn(problem);
                if (System.currentTimeMillis() > deadline) {
                    throw new ConnectException(problem, error);
                }
            }
        }

        private void connect() throws MqttException {
            String topic = config.getString("topic");
            int qos = config.getInt("mqtt.qos");
            MqttAsyncClient fresh = new MqttAsyncClient(
                config.getString("mqtt.url"), config.getString("mqtt.client.id"), new MemoryPersistence());
            client = fresh;
            client.setManualAcks(true);
            client.setCallback(new MqttCallback() {
                @Override public void messageArrived(String mqttTopic, MqttMessage message) throws InterruptedException {
                    arrived.put(new Arrived(topic, mqttTopic, message, fresh));
                }

                @Override public void connectionLost(Throwable why) { LOG.warn("lost the MQTT broker: {}", why.getMessage()); }
                @Override public void deliveryComplete(IMqttDeliveryToken token) { }
            });
            MqttConnectOptions options = new MqttConnectOptions();
            options.setConnectionTimeout(10);
            if (config.getString("mqtt.user") != null) {
                options.setUserName(config.getString("mqtt.user"));
                options.setPassword(config.getPassword("mqtt.password").value().toCharArray());
            }
            if (config.getString("mqtt.truststore.location") != null) {
                Properties trusted = new Properties();
                trusted.put("com.ibm.ssl.trustStore", config.getString("mqtt.truststore.location"));
                trusted.put("com.ibm.ssl.trustStorePassword", config.getPassword("mqtt.truststore.password").value());
                options.setSSLProperties(trusted);
            }
            options.setCleanSession(qos == 0); // else the broker keeps messages for this client while it is away
            client.connect(options).waitForCompletion();
            client.subscribe(config.getString("mqtt.topics"), qos).waitForCompletion();
            LOG.info("connected to {}", config.getString("mqtt.url"));
        }

        private void disconnect() {
            if (client != null) {
                try {
                    client.disconnectForcibly(1000, 1000);
                    client.close();
                } catch (MqttException gone) {
                    LOG.info("the connection was gone already: {}", gone.getMessage());
                }
                client = null;
            }
        }
    }
}
