package kafkalab;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.Properties;

import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;

/** What source and sink need of PostgreSQL: one connection, which is made anew after it broke. */
class Database implements AutoCloseable {
    /** Something to do in one transaction. */
    interface Work<T> {
        T with(Connection connection) throws SQLException;
    }

    private final String url;
    private final Properties login = new Properties();
    private final long patience;
    private long deadline; // by which it must answer again
    private Connection connection;

    Database(AbstractConfig config) {
        url = config.getString("connection.url");
        login.setProperty("user", config.getString("connection.user"));
        login.setProperty("password", config.getPassword("connection.password").value());
        login.setProperty("connectTimeout", "10");
        login.setProperty("socketTimeout", "30");
        login.setProperty("prepareThreshold", "0"); // a plan that the server keeps fails when the table's columns change
        patience = config.getLong("connection.timeout.ms");
        postpone();
    }

    /** The settings that both have. */
    static ConfigDef settings() {
        return new ConfigDef()
            .define("connection.url", Type.STRING, ConfigDef.NO_DEFAULT_VALUE,
                ConfigDef.LambdaValidator.with((name, value) -> {
                    if (value != null && !String.valueOf(value).startsWith("jdbc:postgresql://")) {
                        throw new ConfigException(name, value, "expected jdbc:postgresql://HOST:PORT/DATABASE");
                    }
                }, () -> "jdbc:postgresql://HOST:PORT/DATABASE"),
                Importance.HIGH, "Where the database listens.")
            .define("connection.user", Type.STRING, ConfigDef.NO_DEFAULT_VALUE, new ConfigDef.NonEmptyString(),
                Importance.HIGH, "The user's name.")
            .define("connection.password", Type.PASSWORD, "",
                Importance.HIGH, "The user's password.")
            .define("connection.timeout.ms", Type.LONG, 60_000L, ConfigDef.Range.atLeast(1),
                Importance.LOW, "How long to try to reach the database before the task fails.");
    }

    /** A name as SQL has it. */
    static String quoted(String name) {
        return '"' + name.replace("\"", "\"\"") + '"';
    }

    /**
     * Does the work whole or not at all. Connect tries again after a RetriableException: the database can't be reached now.
     * Any other one fails the task: trying again would change nothing.
     */
    <T> T inTransaction(Work<T> work) {
        try {
            if (connection == null) {
                connection = new org.postgresql.Driver().connect(url, login);
                connection.setAutoCommit(false);
            }
            T result = work.with(connection);
            connection.commit();
            postpone();
            return result;
        } catch (SQLException error) {
            close();
            if (!mayPass(error)) {
                throw new ConnectException("the database refused: " + error.getMessage(), error);
            }
            String problem = "no database answers at " + url + ": " + error.getMessage();
            if (System.currentTimeMillis() > deadline) {
                throw new ConnectException(problem, error);
            }
            throw new RetriableException(problem, error);
        } catch (RuntimeException error) {
            close(); // and so roll back
            throw error;
        }
    }

    /** SQL's classes 08, 40, 53 and 57: no connection, a conflict, no resources, an operator's doing. */
    private static boolean mayPass(SQLException error) {
        String state = error.getSQLState();
        return state != null && state.matches("(08|40|53|57).*");
    }

    private void postpone() {
        deadline = System.currentTimeMillis() + patience;
    }

    @Override public void close() {
        try (Connection old = connection) {
            connection = null;
        } catch (SQLException gone) {
            // It was broken, or it was not: it's closed now.
        }
    }
}
