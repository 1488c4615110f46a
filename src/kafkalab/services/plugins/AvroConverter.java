package kafkalab;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;

import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.storage.Converter;

/** Values as Avro, in the format of Confluent's serializers: a zero byte, the schema's id in the registry, the value. */
public class AvroConverter implements Converter {
    private static final byte MAGIC = 0;
    private static final int HEADER = 1 + Integer.BYTES;
    private static final ConfigDef CONFIG = new ConfigDef()
        .define("schema.registry.url", Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(),
            Importance.HIGH, "Where the schema registry listens, with the path of its API.");

    private Registry registry;
    private String part;

    @Override public ConfigDef config() { return CONFIG; }

    @Override public void configure(Map<String, ?> settings, boolean isKey) {
        registry = new Registry(new AbstractConfig(CONFIG, settings).getString("schema.registry.url"));
        part = isKey ? "key" : "value";
    }

    /** A source's value becomes bytes. A schema that is new is registered under the topic's name. */
    @Override public byte[] fromConnectData(String topic, Schema schema, Object value) {
        if (value == null) {
            return null; // a tombstone
        }
        if (schema == null) {
            throw new DataException("Avro needs a schema, and this " + part + " has none");
        }
        org.apache.avro.Schema avro = AvroData.avroOf(schema, topic);
        int id = registry.register(topic + "-" + part, avro);
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.write(MAGIC);
        bytes.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(id).array());
        try {
            BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(bytes, null);
            new GenericDatumWriter<>(avro).write(AvroData.toAvro(avro, schema, value), encoder);
        } catch (IOException error) {
            throw new DataException("this " + part + " doesn't fit its schema", error);
        }
        return bytes.toByteArray();
    }

    /** A sink's bytes become a value. The id in front says by which schema they were written. */
    @Override public SchemaAndValue toConnectData(String topic, byte[] bytes) {
        if (bytes == null) {
            return SchemaAndValue.NULL;
        }
        if (bytes.length < HEADER || bytes[0] != MAGIC) {
            throw new DataException("this " + part + " doesn't begin with a zero byte and a schema's id");
        }
        org.apache.avro.Schema avro = registry.schema(ByteBuffer.wrap(bytes).getInt(1));
        try {
            Object datum = new GenericDatumReader<>(avro).read(
                null, DecoderFactory.get().binaryDecoder(bytes, HEADER, bytes.length - HEADER, null));
            Schema schema = AvroData.connectOf(avro).build();
            return new SchemaAndValue(schema, AvroData.toConnect(schema, datum));
        } catch (IOException error) {
            throw new DataException("this " + part + " isn't what its schema says", error);
        }
    }
}
