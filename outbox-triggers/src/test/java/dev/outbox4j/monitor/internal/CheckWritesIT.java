package dev.outbox4j.monitor.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorStart;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.HandlerTransactions.Decision;
import dev.outbox4j.triggers.internal.Statements;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** What a wake writes by itself, without the fence of its message's lease. */
@ExtendWith(PostgresExtension.class)
class CheckWritesIT {
  private static final MonitorType<Json> WATCH = MonitorType.of("watch");
  private static final Duration HOUR = Duration.ofHours(1);
  private static final CheckWrites.Failed FAILED =
      new CheckWrites.Failed(3, "no answer", "java.lang.IllegalStateException", "");

  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final MonitorControl control;
  private final CheckWrites writes;

  CheckWritesIT(TestDatabase database) {
    this.database = database;
    this.outbox = PostgresOutbox.on(database.pool(4), database.table());
    this.control = MonitorControl.of(outbox, "shop");
    this.writes =
        new CheckWrites(
            new Statements(outbox.table(), "shop"),
            PostgresOutbox.publisher(outbox.table()).build(),
            new Observer(List.of()),
            new LockWaits(),
            "shop");
  }

  @BeforeEach
  void setUp() {
    database.migrate(MonitorMigrations.of("public", "outbox"), MonitorMigrations::migrate);
    database.update("truncate outbox, outbox_monitor, outbox_monitor_event");
  }

  /** What may be written, and what is there afterwards. */
  private enum Kind {
    AGAIN(
        "running 6",
        (writes, of) ->
            writes.again(of, said(CheckResult.Kind.AGAIN), List.of(), CheckWritesIT::none)),
    END(
        "failed 6",
        (writes, of) ->
            writes.end(
                of,
                said(CheckResult.Kind.FAIL),
                List.of(),
                MonitorStatus.FAILED,
                null,
                CheckWritesIT::none)),
    EXPIRED("completed 5", CheckWrites::expired),
    ATTEMPT_FAILED("running 5", (writes, of) -> writes.attemptFailed(of, FAILED, List.of(), HOUR)),
    LAST_ATTEMPT_FAILED("failed 5", (writes, of) -> writes.failed(of, FAILED));

    private final String after;

    @SuppressWarnings("ImmutableEnumChecker") // made of nothing that changes
    private final BiFunction<CheckWrites, Instance, Write> make;

    Kind(String after, BiFunction<CheckWrites, Instance, Write> make) {
      this.after = after;
      this.make = make;
    }
  }

  private static Write none(RuntimeException refusal) {
    throw new AssertionError(refusal);
  }

  private static CheckResult said(CheckResult.Kind kind) {
    return new CheckResult(
        kind,
        HOUR,
        null,
        kind == CheckResult.Kind.FAIL ? "never" : null,
        true,
        null,
        null,
        List.of(),
        List.of(OutboxMessage.to("alerts").body("told").build()));
  }

  /** An instance that has been checked five times. */
  private Instance started() {
    control.start(MonitorStart.of(WATCH, Json.NULL).id("x").firstCheckIn(HOUR));
    database.update("update outbox_monitor set status = 'running', iteration = 5");
    Instance found =
        new InstanceReads(outbox, "shop")
            .read("x", database.one(Long.class, "select message_id from outbox_monitor"));
    assertThat(found).isNotNull();
    return found;
  }

  private Decision write(Write write) throws SQLException {
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      Decision decision = write.on(connection);
      connection.commit();
      return decision;
    }
  }

  private List<String> whole() {
    List<String> rows = new ArrayList<>();
    for (String table : List.of("outbox_monitor", "outbox_monitor_event", "outbox")) {
      rows.addAll(
          database.list(String.class, "select t::text from " + table + " t order by t::text"));
    }
    return rows;
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void itIsWrittenOfTheInstanceThatTheCheckWasGiven(Kind kind) throws SQLException {
    write(kind.make.apply(writes, started()));

    assertThat(database.one(String.class, "select status || ' ' || iteration from outbox_monitor"))
        .isEqualTo(kind.after);
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void whatIsOfAnotherCheckExecutionOrApplicationOrHasEndedIsNotWritten(Kind kind)
      throws SQLException {
    Instance given = started();
    for (String change :
        List.of(
            "iteration = 6",
            "iteration = 4",
            "iteration = 5, execution = execution + 1",
            "execution = execution - 1, application = 'bank'",
            "application = 'shop', status = 'terminated', ended_at = now()")) {
      database.update("update outbox_monitor set " + change);
      List<String> before = whole();

      assertThat(write(kind.make.apply(writes, given))).as(change).isEqualTo(Decision.ack());

      assertThat(whole()).as(change).isEqualTo(before);
    }
    database.update("update outbox_monitor set status = 'running', ended_at = null");
    write(kind.make.apply(writes, given));
    assertThat(database.one(String.class, "select status || ' ' || iteration from outbox_monitor"))
        .as("which has changed nothing else")
        .isEqualTo(kind.after);
  }

  /** Nobody is to wait for a wake that would find nothing but that. */
  @ParameterizedTest
  @CsvSource({"AGAIN, completed expired 6 0", "ATTEMPT_FAILED, completed expired 5 3"})
  void whatIsWrittenPastTheExpiryEndsTheInstance(Kind kind, String after) throws SQLException {
    Instance given = started();
    database.update("update outbox_monitor set expires_at = now()");

    assertThat(write(kind.make.apply(writes, given))).isEqualTo(Decision.ack());

    assertThat(
            database.one(
                String.class,
                "select concat_ws(' ', status, outcome, iteration, attempts_count)"
                    + " from outbox_monitor where ended_at is not null and due_at is null"))
        .isEqualTo(after);
    assertThat(database.list(String.class, "select kind from outbox_monitor_event order by id"))
        .containsExactly("started", kind == Kind.AGAIN ? "checked" : "attempt_failed", "completed");
    assertThat(database.count("outbox where queue = 'alerts'"))
        .as("what the check had to tell")
        .isEqualTo(kind == Kind.AGAIN ? 1 : 0);
  }

  @ParameterizedTest
  @EnumSource(
      value = Kind.class,
      names = {"AGAIN", "ATTEMPT_FAILED"})
  void aSuspendedOneIsNotEndedByThat(Kind kind) throws SQLException {
    Instance given = started();
    database.update("update outbox_monitor set expires_at = now(), status = 'suspended'");

    assertThat(write(kind.make.apply(writes, given))).isInstanceOf(Decision.Reschedule.class);

    assertThat(database.count("outbox_monitor where status = 'suspended' and ended_at is null"))
        .isEqualTo(1);
  }

  @Test
  void aMessageIsLostByAnInstanceThatIsSuspendedAndByNoOther() throws SQLException {
    Instance given = started();
    Decision again = Decision.reschedule(Duration.ZERO);
    for (String change :
        List.of(
            "status = 'running'",
            "status = 'suspended', message_id = message_id + 1",
            "message_id = message_id - 1, execution = execution + 1")) {
      database.update("update outbox_monitor set " + change);
      assertThat(write(writes.suspended(given))).as(change).isEqualTo(again);
      assertThat(database.count("outbox_monitor where message_id is null")).as(change).isZero();
    }
    database.update("update outbox_monitor set execution = execution - 1");
    assertThat(write(writes.suspended(given))).isEqualTo(Decision.ack());
    assertThat(database.count("outbox_monitor where message_id is null")).isEqualTo(1);
  }

  @Test
  void theTimeOfTheFirstAttemptThatFailedIsKeptUntilACheckIsCommitted() throws SQLException {
    Instance given = started();
    String first = "select first_failed_at::text from outbox_monitor";
    write(writes.attemptFailed(given, FAILED, List.of(), HOUR));
    database.update("update outbox_monitor set first_failed_at = now() - interval '1 hour'");
    String then = database.one(String.class, first);

    write(writes.attemptFailed(given, FAILED, List.of(), HOUR));
    assertThat(database.one(String.class, first)).isEqualTo(then);
    assertThat(started().sinceFirstAttempt()).isGreaterThanOrEqualTo(HOUR);

    write(writes.again(given, said(CheckResult.Kind.AGAIN), List.of(), CheckWritesIT::none));
    assertThat(database.count("outbox_monitor where first_failed_at is null")).isEqualTo(1);
  }

  /** Whoever waits for the row does not for long, and a node that freezes keeps it for seconds. */
  @Test
  void theTransactionIsBoundedByTheServer() throws SQLException {
    Instance given = started();
    try (Connection connection = database.plain().getConnection()) {
      connection.setAutoCommit(false);
      writes.expired(given).on(connection);
      assertThat(setting(connection, "lock_timeout")).isEqualTo("500ms");
      assertThat(setting(connection, "statement_timeout")).isEqualTo("10s");
      assertThat(setting(connection, "idle_in_transaction_session_timeout")).isEqualTo("5s");
      connection.rollback();
    }
  }

  private static String setting(Connection connection, String name) throws SQLException {
    try (ResultSet row =
        connection.createStatement().executeQuery("select current_setting('" + name + "')")) {
      row.next();
      return row.getString(1);
    }
  }
}
