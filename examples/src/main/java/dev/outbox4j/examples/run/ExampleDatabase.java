package dev.outbox4j.examples.run;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.PrintStream;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * The database of an example: the user's own, given as {@code
 * -Dquickstart.url=jdbc:postgresql://localhost:5432/shop}, else an embedded one. All is in a schema
 * of the example's own, so that nothing of the user's is touched.
 */
public final class ExampleDatabase implements AutoCloseable {
  private final PGSimpleDataSource unpooled;
  private final String schema;
  private final @Nullable EmbeddedServer embedded;

  private ExampleDatabase(
      PGSimpleDataSource unpooled, String schema, @Nullable EmbeddedServer embedded) {
    this.unpooled = unpooled;
    this.schema = schema;
    this.embedded = embedded;
  }

  /**
   * Opens the database that the properties {@code quickstart.url} and {@code quickstart.user} and
   * the variable {@code QUICKSTART_PASSWORD} name, or starts one.
   *
   * @param schema the example's own, a plain name; made anew, with nothing in it
   * @param out told which it is
   * @return the database, to be closed by the caller
   * @throws IllegalArgumentException if the URL is none of PostgreSQL
   * @throws IllegalStateException if the embedded server does not start
   * @throws SQLException if the schema cannot be made
   */
  public static ExampleDatabase open(String schema, PrintStream out) throws SQLException {
    String url = property("url", "");
    if (url.isEmpty()) {
      out.println("Starting an embedded PostgreSQL");
      EmbeddedServer embedded = EmbeddedServer.start();
      String local = "jdbc:postgresql://localhost:" + embedded.port() + "/postgres";
      return open(schema, local, "postgres", null, embedded);
    }
    out.println("Using your database");
    String password = System.getenv("QUICKSTART_PASSWORD");
    return open(schema, url, property("user", "postgres"), password, null);
  }

  static ExampleDatabase open(
      String schema,
      String url,
      String user,
      @Nullable String password,
      @Nullable EmbeddedServer embedded)
      throws SQLException {
    PGSimpleDataSource dataSource = new PGSimpleDataSource();
    dataSource.setUrl(url);
    dataSource.setUser(user);
    dataSource.setPassword(password);
    dataSource.setCurrentSchema(schema);
    ExampleDatabase database = new ExampleDatabase(dataSource, schema, embedded);
    try {
      database.makeSchema();
    } catch (SQLException | RuntimeException e) {
      database.close();
      throw e;
    }
    return database;
  }

  private static String property(String name, String otherwise) {
    String value = System.getProperty("quickstart." + name, "").strip();
    return value.isEmpty() ? otherwise : value;
  }

  private void makeSchema() throws SQLException {
    try (Connection connection = unpooled.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("drop schema if exists " + schema + " cascade");
      statement.execute("create schema " + schema);
    }
  }

  /** {@return unpooled connections, whose schema is the example's} */
  public PGSimpleDataSource unpooled() {
    return unpooled;
  }

  /** {@return the example's schema} */
  public String schema() {
    return schema;
  }

  /**
   * Opens a pool.
   *
   * @param unpooled where its connections come from
   * @param size how many there are at most
   * @return the pool, to be closed by the caller
   */
  public static HikariDataSource pool(DataSource unpooled, int size) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(unpooled);
    config.setMaximumPoolSize(size);
    return new HikariDataSource(config);
  }

  @Override
  public void close() {
    if (embedded != null) {
      embedded.close();
    }
  }
}
