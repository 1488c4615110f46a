package kafkalab;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Asks a table again and again for rows that changed since it last asked, by a column that says when a row changed. */
public class JdbcSourceConnector extends SourceConnector {
    private static final ConfigDef CONFIG = Database.settings()
        .define("table", Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(),
            Importance.HIGH, "The table to read.")
        .define("timestamp.column.name", Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(),
            Importance.HIGH, "The column that says when a row changed last.")
        .define("incrementing.column.name", Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(),
            Importance.HIGH, "A column of whole numbers that tells rows apart which changed at the same time.")
        .define("topic.prefix", Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(),
            Importance.HIGH, "The topic's name is this prefix and the table's name.")
        .define("poll.interval.ms", Type.LONG, 5_000L, ConfigDef.Range.atLeast(1),
            Importance.MEDIUM, "How long to wait before asking again.")
        .define("batch.max.rows", Type.INT, 100, ConfigDef.Range.atLeast(1),
            Importance.LOW, "How many rows to ask for at once.");

    private Map<String, String> settings;

    @Override public String version() { return "1"; }
    @Override public ConfigDef config() { return CONFIG; }
    @Override public void start(Map<String, String> settings) { this.settings = settings; }
    @Override public void stop() { }
    @Override public Class<? extends Task> taskClass() { return JdbcSourceTask.class; }

    /** One task, whatever the limit: there is one table. */
    @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(settings); }

    public static class JdbcSourceTask extends SourceTask {
        private AbstractConfig config;
        private Database database;
        private Instant time; // of the last row that was read, with its id; null before the first one
        private long id;
        private long next; // when to ask again

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> settings) {
            config = new AbstractConfig(CONFIG, settings);
            database = new Database(config);
            goOnAfter(context.offsetStorageReader().offset(partition()));
        }

        /** Connect calls this again and again. To be stopped soon it waits for half a second at most. */
        @Override public List<SourceRecord> poll() throws InterruptedException {
            long wait = next - System.currentTimeMillis();
            if (wait > 0) {
                Thread.sleep(Math.min(wait, 500));
                return null;
            }
            next = System.currentTimeMillis() + config.getLong("poll.interval.ms");
            List<SourceRecord> records = database.inTransaction(this::changed);
            if (!records.isEmpty()) {
                goOnAfter(records.get(records.size() - 1).sourceOffset());
            }
            if (records.size() == config.getInt("batch.max.rows")) {
                next = 0; // there may be more
            }
            return records;
        }

        @Override public void stop() {
            database.close();
        }

        private void goOnAfter(Map<String, ?> offset) {
            if (offset != null) {
                time = Instant.parse((String) offset.get("timestamp"));
                id = ((Number) offset.get("id")).longValue();
            }
        }

        private List<SourceRecord> changed(Connection connection) throws SQLException {
            String timeColumn = Database.quoted(config.getString("timestamp.column.name"));
            String idColumn = Database.quoted(config.getString("incrementing.column.name"));
            String both = timeColumn + ", " + idColumn;
            String question = "SELECT * FROM " + Database.quoted(config.getString("table"))
                + " WHERE " + (time == null ? timeColumn + " IS NOT NULL" : "(" + both + ") > (?, ?)")
                + " ORDER BY " + both + " LIMIT " + config.getInt("batch.max.rows");
            try (PreparedStatement statement = connection.prepareStatement(question)) {
                if (time != null) {
                    statement.setTimestamp(1, Timestamp.from(time));
                    statement.setLong(2, id);
                }
                return recordsOf(statement.executeQuery());
            }
        }

        private List<SourceRecord> recordsOf(ResultSet rows) throws SQLException {
            Schema schema = schemaOf(rows.getMetaData());
            List<SourceRecord> records = new ArrayList<>();
            while (rows.next()) {
                Struct value = new Struct(schema);
                for (Field field : schema.fields()) {
                    value.put(field, valueOf(rows, field.index() + 1));
                }
                Map<String, Object> offset = Map.of(
                    "timestamp", rows.getTimestamp(config.getString("timestamp.column.name")).toInstant().toString(),
                    "id", rows.getLong(config.getString("incrementing.column.name")));
                String topic = config.getString("topic.prefix") + config.getString("table");
                records.add(new SourceRecord(partition(), offset, topic, schema, value));
            }
            return records;
        }

        /** What Connect keeps the offset under. */
        private Map<String, String> partition() {
            return Map.of("table", config.getString("table"));
        }

        /** Columns as they are now: a table may get and lose some. */
        private static Schema schemaOf(ResultSetMetaData columns) throws SQLException {
            SchemaBuilder schema = SchemaBuilder.struct();
            for (int i = 1; i <= columns.getColumnCount(); i++) {
                schema.field(columns.getColumnName(i), switch (columns.getColumnType(i)) {
                    case Types.BIT, Types.BOOLEAN -> Schema.OPTIONAL_BOOLEAN_SCHEMA;
                    case Types.SMALLINT, Types.INTEGER -> Schema.OPTIONAL_INT32_SCHEMA;
                    case Types.BIGINT -> Schema.OPTIONAL_INT64_SCHEMA;
                    case Types.REAL -> Schema.OPTIONAL_FLOAT32_SCHEMA;
                    case Types.DOUBLE -> Schema.OPTIONAL_FLOAT64_SCHEMA;
                    default -> Schema.OPTIONAL_STRING_SCHEMA;
                });
            }
            return schema.build();
        }

        private static Object valueOf(ResultSet rows, int column) throws SQLException {
            Object value = rows.getObject(column);
            if (value instanceof Timestamp at) {
                return at.toInstant().toString();
            }
            boolean fits = value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long
                || value instanceof Float || value instanceof Double;
            return fits ? value : rows.getString(column);
        }
    }
}
