package kafkalab;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** Writes each record as a row of the table that has the topic's name. */
public class JdbcSinkConnector extends SinkConnector {
    private static final ConfigDef CONFIG = Database.settings()
        .define("insert.mode", Type.STRING, "insert", ConfigDef.ValidString.in("insert", "upsert"),
            Importance.HIGH, "With insert each record is a new row. With upsert it replaces the row that has its key.")
        .define("delete.enabled", Type.BOOLEAN, false,
            Importance.HIGH, "Whether a record without a value deletes the row that has its key. Else it's left out.")
        .define("pk.field", Type.STRING, "id", new ConfigDef.NonEmptyString(),
            Importance.MEDIUM, "The table's primary key: the column that takes the record's key.");

    private Map<String, String> settings;

    @Override public String version() { return "1"; }
    @Override public ConfigDef config() { return CONFIG; }
    @Override public void start(Map<String, String> settings) { this.settings = settings; }
    @Override public void stop() { }
    @Override public Class<? extends Task> taskClass() { return JdbcSinkTask.class; }
    @Override public List<Map<String, String>> taskConfigs(int most) { return Collections.nCopies(most, settings); }

    public static class JdbcSinkTask extends SinkTask {
        private AbstractConfig config;
        private Database database;

        @Override public String version() { return "1"; }

        @Override public void start(Map<String, String> settings) {
            config = new AbstractConfig(CONFIG, settings);
            database = new Database(config);
        }

        /** Connect commits the records' offsets after this, so a worker that dies in between gets them a second time. */
        @Override public void put(Collection<SinkRecord> records) {
            if (records.isEmpty()) {
                return;
            }
            try {
                database.inTransaction(connection -> {
                    for (SinkRecord record : records) {
                        write(connection, record);
                    }
                    return null;
                });
            } catch (RetriableException later) {
                context.timeout(500); // Connect brings the same records again
                throw later;
            }
        }

        @Override public void stop() {
            database.close();
        }

        private void write(Connection connection, SinkRecord record) throws SQLException {
            Object key = record.key();
            if (key == null || key instanceof Struct || key instanceof Map) {
                throw new DataException("the key of " + where(record) + " is " + key + ", and not the row's id alone");
            }
            String table = Database.quoted(record.topic());
            String primary = Database.quoted(config.getString("pk.field"));
            List<Object> values = new ArrayList<>();
            String order;
            if (record.value() != null) {
                Map<String, Object> row = rowOf(record);
                row.put(config.getString("pk.field"), key);
                order = insertion(table, primary, new ArrayList<>(row.keySet()));
                values.addAll(row.values());
            } else if (config.getBoolean("delete.enabled")) {
                order = "DELETE FROM " + table + " WHERE " + primary + " = ?";
                values.add(key);
            } else {
                return;
            }
            try (PreparedStatement statement = connection.prepareStatement(order)) {
                for (int i = 0; i < values.size(); i++) {
                    bind(statement, i + 1, values.get(i));
                }
                statement.executeUpdate();
            } catch (SQLException error) {
                throw new SQLException(error.getMessage() + " (" + where(record) + ")", error.getSQLState(), error);
            }
        }

        private String insertion(String table, String primary, List<String> fields) {
            List<String> columns = fields.stream().map(Database::quoted).toList();
            String order = "INSERT INTO " + table + " (" + String.join(", ", columns) + ") VALUES ("
                + String.join(", ", Collections.nCopies(columns.size(), "?")) + ")";
            if (config.getString("insert.mode").equals("insert")) {
                return order;
            }
            List<String> changes = columns.stream().map(column -> column + " = EXCLUDED." + column).toList();
            return order + " ON CONFLICT (" + primary + ") DO UPDATE SET " + String.join(", ", changes);
        }

        private static void bind(PreparedStatement statement, int place, Object value) throws SQLException {
            if (value instanceof String) {
                statement.setObject(place, value, Types.OTHER); // the column's type is the database's business
            } else {
                statement.setObject(place, value);
            }
        }

        private static Map<String, Object> rowOf(SinkRecord record) {
            Map<String, Object> row = new LinkedHashMap<>();
            if (record.value() instanceof Struct value) {
                for (Field field : value.schema().fields()) {
                    row.put(field.name(), value.get(field));
                }
            } else if (record.value() instanceof Map<?, ?> value) {
                value.forEach((name, content) -> row.put(String.valueOf(name), content));
            } else {
                throw new DataException("the value of " + where(record) + " has no fields");
            }
            return row;
        }

        private static String where(SinkRecord record) {
            return "record " + record.kafkaOffset() + " of " + record.topic() + ", partition " + record.kafkaPartition();
        }
    }
}
