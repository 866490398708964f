package dev.outbox4j.migrations;

import dev.outbox4j.OutboxException;
import dev.outbox4j.internal.schema.Names;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.configuration.FluentConfiguration;
import org.flywaydb.database.postgresql.PostgreSQLConfigurationExtension;

/**
 * The migrations of one line, as text and for Flyway.
 *
 * @param folder where they are, beside this class
 * @param files their names, in the order of their versions, which begin with 1 and have no gap
 */
record Scripts(String folder, List<String> files) {
  static final Scripts OUTBOX = new Scripts("outbox", List.of("V1__outbox.sql"));
  static final Scripts DEAD_LETTERS = new Scripts("deadletters", List.of("V1__dead_letters.sql"));

  static final Scripts INBOX = new Scripts("inbox", List.of("V1__inbox.sql"));

  static final Scripts ORDERED = new Scripts("ordered", List.of("V1__ordered.sql"));

  static final Scripts PAUSES = new Scripts("pauses", List.of("V1__pauses.sql"));

  static final Scripts DEDUP = new Scripts("dedup", List.of("V1__dedup.sql"));

  static final Scripts SLOTS = new Scripts("slots", List.of("V1__slots.sql"));

  static final Scripts TIMERS = new Scripts("timers", List.of("V1__timers.sql"));

  static final Scripts LOCKS = new Scripts("locks", List.of("V1__locks.sql"));

  static final Scripts MONITORS = new Scripts("monitors", List.of("V1__monitors.sql"));

  static final Scripts JOBS = new Scripts("jobs", List.of("V1__jobs.sql"));

  static final Scripts POLLERS = new Scripts("pollers", List.of("V1__pollers.sql"));

  static final Scripts PARTITION = new Scripts("partitions", List.of("partition.sql"));

  static final Scripts UNPARTITION = new Scripts("partitions", List.of("unpartition.sql"));

  private static final Pattern PLACEHOLDER = Pattern.compile("\\$\\{([^}]*)}");

  int latest() {
    return files.size();
  }

  @SuppressWarnings(
      "deprecation") // Flyway 11, that of Spring Boot 3.5, has no other way to a plugin
  FluentConfiguration configure(
      FluentConfiguration flyway, String schema, String history, Map<String, String> placeholders) {
    // a lock of the session and not of a transaction: Flyway then uses one connection and not two
    flyway
        .getPluginRegister()
        .getPlugin(PostgreSQLConfigurationExtension.class)
        .setTransactionalLock(false);
    return flyway
        .locations("classpath:dev/outbox4j/migrations/" + folder)
        .defaultSchema(schema)
        .schemas(schema)
        .createSchemas(true)
        .table(history)
        .placeholders(placeholders)
        // other tables of the schema are none of this history's business
        .baselineOnMigrate(true)
        .baselineVersion("0");
  }

  /** The migrations after one version, up to and including another. */
  String sql(int from, int to, Map<String, String> placeholders) {
    if (from < 0 || from >= to || to > latest()) {
      throw new IllegalArgumentException(
          "There are no migrations from version %d to %d; there are versions 1 to %d, and 0 is before the first"
              .formatted(from, to, latest()));
    }
    StringBuilder sql = new StringBuilder();
    for (String file : files.subList(from, to)) {
      sql.append("-- ").append(file).append('\n');
      sql.append(resolve(file, placeholders).stripTrailing()).append("\n");
    }
    return sql.toString();
  }

  static String createSchema(String schema) {
    return schema.equals("public")
        ? ""
        : "create schema if not exists " + Names.quoted(schema) + ";\n\n";
  }

  private String resolve(String file, Map<String, String> placeholders) {
    return PLACEHOLDER
        .matcher(read(file))
        .replaceAll(
            found -> {
              String value = placeholders.get(found.group(1));
              if (value == null) {
                throw new IllegalStateException(
                    "no value for the placeholder %s of %s".formatted(found.group(), file));
              }
              return Matcher.quoteReplacement(value);
            });
  }

  private String read(String file) {
    try (InputStream in = Scripts.class.getResourceAsStream(folder + "/" + file)) {
      if (in == null) {
        throw new IllegalStateException(file + " is missing from the jar; is it repackaged?");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(file + " cannot be read", e);
    }
  }

  static int migrate(FluentConfiguration configured) {
    requirePostgres(configured.getDataSource());
    Flyway flyway = configured.load();
    return flyway.migrate().migrationsExecuted;
  }

  /** Before Flyway shows pages of SQL that another database does not understand. */
  private static void requirePostgres(DataSource dataSource) {
    String product;
    try (Connection connection = dataSource.getConnection()) {
      product = connection.getMetaData().getDatabaseProductName();
    } catch (SQLException noAnswer) {
      return; // Flyway says why, and tries as often as it is told
    }
    if (!product.equals("PostgreSQL")) {
      throw new OutboxException(
          "The outbox needs PostgreSQL, and the data source connects to "
              + product
              + "; give it one that connects to PostgreSQL, also in tests");
    }
  }
}
