package kafkalab;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.avro.JsonProperties;
import org.apache.avro.LogicalType;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema.Type;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.DataException;

/** Connect's schemas and values as Avro's, and back. */
class AvroData {
    private static final int PRECISION = 64; // of a decimal: Connect doesn't know it, and Avro wants one

    private AvroData() { }

    /** What is optional becomes a union with null and has the default null: a reader then gets on without it. */
    static org.apache.avro.Schema avroOf(Schema schema, String name) {
        return avroOf(schema, name, new HashMap<>());
    }

    private static org.apache.avro.Schema avroOf(Schema schema, String name, Map<String, org.apache.avro.Schema> records) {
        org.apache.avro.Schema avro = switch (schema.type()) {
            case BOOLEAN -> org.apache.avro.Schema.create(Type.BOOLEAN);
            case INT8, INT16, INT32 -> org.apache.avro.Schema.create(Type.INT);
            case INT64 -> org.apache.avro.Schema.create(Type.LONG);
            case FLOAT32 -> org.apache.avro.Schema.create(Type.FLOAT);
            case FLOAT64 -> org.apache.avro.Schema.create(Type.DOUBLE);
            case STRING -> org.apache.avro.Schema.create(Type.STRING);
            case BYTES -> org.apache.avro.Schema.create(Type.BYTES);
            case ARRAY -> org.apache.avro.Schema.createArray(avroOf(schema.valueSchema(), name + "_item", records));
            case MAP -> {
                if (schema.keySchema().type() != Schema.Type.STRING) {
                    throw new DataException("the keys of a map are text in Avro, not " + schema.keySchema().type());
                }
                yield org.apache.avro.Schema.createMap(avroOf(schema.valueSchema(), name + "_item", records));
            }
            case STRUCT -> record(schema, valid(schema.name() == null ? name : schema.name()), records);
        };
        LogicalType logical = logical(schema);
        if (logical != null) {
            logical.addToSchema(avro);
        }
        return schema.isOptional() ? org.apache.avro.Schema.createUnion(org.apache.avro.Schema.create(Type.NULL), avro) : avro;
    }

    /** Avro describes a record of a name once, and elsewhere only names it. */
    private static org.apache.avro.Schema record(Schema schema, String name, Map<String, org.apache.avro.Schema> records) {
        if (!records.containsKey(name)) {
            org.apache.avro.Schema record = org.apache.avro.Schema.createRecord(name, schema.doc(), null, false);
            records.put(name, record);
            List<org.apache.avro.Schema.Field> fields = new ArrayList<>();
            for (Field field : schema.fields()) {
                fields.add(new org.apache.avro.Schema.Field(
                    field.name(), avroOf(field.schema(), name + "_" + field.name(), records), field.schema().doc(),
                    field.schema().isOptional() ? JsonProperties.NULL_VALUE : null));
            }
            record.setFields(fields);
        }
        return records.get(name);
    }

    /** A name as Avro allows it: of letters, digits and underscores, with dots between its parts. */
    private static String valid(String name) {
        return name.replaceAll("[^A-Za-z0-9_.]", "_").replaceAll("(^|\\.)(?=[0-9])", "$1_");
    }

    private static LogicalType logical(Schema schema) {
        return switch (String.valueOf(schema.name())) {
            case Date.LOGICAL_NAME -> LogicalTypes.date();
            case Time.LOGICAL_NAME -> LogicalTypes.timeMillis();
            case Timestamp.LOGICAL_NAME -> LogicalTypes.timestampMillis();
            case Decimal.LOGICAL_NAME ->
                LogicalTypes.decimal(PRECISION, Integer.parseInt(schema.parameters().get(Decimal.SCALE_FIELD)));
            default -> null;
        };
    }

    static Object toAvro(org.apache.avro.Schema type, Schema schema, Object value) {
        if (value == null) {
            return null;
        }
        org.apache.avro.Schema avro = type.isUnion() ? type.getTypes().get(1) : type;
        switch (String.valueOf(schema.name())) {
            case Date.LOGICAL_NAME: return Date.fromLogical(schema, (java.util.Date) value);
            case Time.LOGICAL_NAME: return Time.fromLogical(schema, (java.util.Date) value);
            case Timestamp.LOGICAL_NAME: return Timestamp.fromLogical(schema, (java.util.Date) value);
            case Decimal.LOGICAL_NAME: return ByteBuffer.wrap(Decimal.fromLogical(schema, (java.math.BigDecimal) value));
            default:
        }
        return switch (schema.type()) {
            case INT8, INT16 -> ((Number) value).intValue();
            case BYTES -> value instanceof byte[] bytes ? ByteBuffer.wrap(bytes) : value;
            case ARRAY -> {
                List<Object> items = new ArrayList<>();
                ((List<?>) value).forEach(item -> items.add(toAvro(avro.getElementType(), schema.valueSchema(), item)));
                yield items;
            }
            case MAP -> {
                Map<Object, Object> items = new LinkedHashMap<>();
                ((Map<?, ?>) value).forEach(
                    (key, item) -> items.put(key, toAvro(avro.getValueType(), schema.valueSchema(), item)));
                yield items;
            }
            case STRUCT -> {
                GenericData.Record record = new GenericData.Record(avro);
                for (Field field : schema.fields()) {
                    org.apache.avro.Schema of = avro.getField(field.name()).schema();
                    record.put(field.name(), toAvro(of, field.schema(), ((Struct) value).get(field)));
                }
                yield record;
            }
            default -> value;
        };
    }

    static SchemaBuilder connectOf(org.apache.avro.Schema avro) {
        LogicalType logical = avro.getLogicalType();
        return switch (avro.getType()) {
            case BOOLEAN -> SchemaBuilder.bool();
            case INT -> logical instanceof LogicalTypes.Date ? Date.builder()
                : logical instanceof LogicalTypes.TimeMillis ? Time.builder() : SchemaBuilder.int32();
            case LONG -> logical instanceof LogicalTypes.TimestampMillis ? Timestamp.builder() : SchemaBuilder.int64();
            case FLOAT -> SchemaBuilder.float32();
            case DOUBLE -> SchemaBuilder.float64();
            case STRING, ENUM -> SchemaBuilder.string();
            case BYTES -> logical instanceof LogicalTypes.Decimal decimal ? Decimal.builder(decimal.getScale())
                : SchemaBuilder.bytes();
            case ARRAY -> SchemaBuilder.array(connectOf(avro.getElementType()).build());
            case MAP -> SchemaBuilder.map(Schema.STRING_SCHEMA, connectOf(avro.getValueType()).build());
            case RECORD -> {
                SchemaBuilder record = SchemaBuilder.struct().name(avro.getFullName());
                avro.getFields().forEach(field -> record.field(field.name(), connectOf(field.schema()).build()));
                yield record;
            }
            case UNION -> {
                List<org.apache.avro.Schema> types = new ArrayList<>(avro.getTypes());
                if (!types.removeIf(type -> type.getType() == Type.NULL) || types.size() != 1) {
                    throw new DataException("Connect knows only unions of null and one other type, not " + avro);
                }
                yield connectOf(types.get(0)).optional();
            }
            default -> throw new DataException("Connect has no counterpart of Avro's " + avro.getType());
        };
    }

    static Object toConnect(Schema schema, Object datum) {
        if (datum == null) {
            return null;
        }
        return switch (schema.type()) {
            case INT32 -> Date.LOGICAL_NAME.equals(schema.name()) ? Date.toLogical(schema, (int) datum)
                : Time.LOGICAL_NAME.equals(schema.name()) ? Time.toLogical(schema, (int) datum) : datum;
            case INT64 -> Timestamp.LOGICAL_NAME.equals(schema.name()) ? Timestamp.toLogical(schema, (long) datum) : datum;
            case STRING -> datum.toString();
            case BYTES -> {
                byte[] bytes = new byte[((ByteBuffer) datum).remaining()];
                ((ByteBuffer) datum).get(bytes);
                yield Decimal.LOGICAL_NAME.equals(schema.name()) ? Decimal.toLogical(schema, bytes) : bytes;
            }
            case ARRAY -> {
                List<Object> items = new ArrayList<>();
                ((List<?>) datum).forEach(item -> items.add(toConnect(schema.valueSchema(), item)));
                yield items;
            }
            case MAP -> {
                Map<String, Object> items = new LinkedHashMap<>();
                ((Map<?, ?>) datum).forEach((key, item) -> items.put(key.toString(), toConnect(schema.valueSchema(), item)));
                yield items;
            }
            case STRUCT -> {
                Struct struct = new Struct(schema);
                schema.fields().forEach(
                    field -> struct.put(field, toConnect(field.schema(), ((GenericRecord) datum).get(field.name()))));
                yield struct;
            }
            default -> datum;
        };
    }
}
