package dev.outbox4j.postgres.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.CapturedLogs;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Processes that show what the queues hold; each has a registry and connections of its own. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class OutboxDepthMetricsIT {
  private static final Duration INTERVAL = Duration.ofSeconds(1);
  private static final Duration PATIENCE = Duration.ofSeconds(30);
  private static final String COUNT = "recursive names";
  private static final String TAKE = "'depths'";

  private final TestDatabase database;
  private final List<Instance> instances = new ArrayList<>();

  OutboxDepthMetricsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
  }

  @AfterEach
  void stop() {
    instances.forEach(process -> process.metrics.stop());
  }

  /** A service's process. */
  private static final class Instance {
    final SimpleMeterRegistry registry = new SimpleMeterRegistry();
    final CountingDataSource source;
    final OutboxDepthMetrics metrics;

    Instance(DataSource source, OutboxTable table, Duration interval) {
      this.source = new CountingDataSource(source);
      this.metrics =
          OutboxDepthMetrics.builder(registry, PostgresOutbox.on(this.source, table))
              .interval(interval)
              .build();
    }

    long counts() {
      return source.executionsOf(COUNT);
    }

    boolean asks() {
      return Double.valueOf(1).equals(value("outbox.depth.asking", null));
    }

    /** Null if there is no such gauge. */
    @Nullable Double value(String name, @Nullable String queue) {
      Meter meter =
          queue == null
              ? registry.find(name).meter()
              : registry.find(name).tag("queue", queue).meter();
      return meter == null ? null : ((Gauge) meter).value();
    }

    boolean shows(String name, String queue, double value) {
      return Double.valueOf(value).equals(value(name, queue));
    }

    /** Whether any gauge of a queue has a value. */
    boolean showsAnything() {
      return registry.getMeters().stream()
          .filter(meter -> meter.getId().getTag("queue") != null)
          .anyMatch(meter -> !Double.isNaN(((Gauge) meter).value()));
    }

    boolean hasQueues() {
      return registry.getMeters().stream().anyMatch(meter -> meter.getId().getTag("queue") != null);
    }
  }

  private Instance process(DataSource source) {
    return process(source, database.table());
  }

  private Instance process(DataSource source, OutboxTable table) {
    Instance process = new Instance(source, table, INTERVAL);
    instances.add(process);
    return process;
  }

  private Instance started(DataSource source) {
    Instance process = process(source);
    process.metrics.start();
    return process;
  }

  private void insert(String queue, int rows) {
    database.update(
        "insert into outbox (queue, payload) select ?, 'x' from generate_series(1, ?)",
        queue,
        rows);
  }

  private static List<Thread> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("outbox-outbox-depths"))
        .toList();
  }

  private PGSimpleDataSource through(TcpProxy proxy) {
    PGSimpleDataSource source = database.plain();
    source.setServerNames(new String[] {proxy.host()});
    source.setPortNumbers(new int[] {proxy.port()});
    source.setConnectTimeout(1);
    source.setLoginTimeout(1);
    return source;
  }

  @Test
  void showsWhatEveryQueueHoldsAlsoThoseNobodySubscribesTo() {
    database.update(
        """
        insert into outbox (queue, payload, available_at, lease_until)
        select 'orders', 'x'::bytea, now() - make_interval(secs => 60 * n), null from generate_series(1, 5) n
        union all select 'orders', 'x'::bytea, now() - interval '1 h', now() + interval '1 h' from generate_series(1, 3)
        union all select 'nobody''s', 'x'::bytea, now() + interval '1 h', null
        """);

    Instance process = started(database.plain());

    await().atMost(PATIENCE).until(() -> process.shows("outbox.depth.ready", "orders", 5));
    assertThat(process.value("outbox.depth.leased", "orders")).isEqualTo(3);
    assertThat(process.value("outbox.depth.later", "orders")).isZero();
    assertThat(process.value("outbox.depth.oldest.ready", "orders")).isBetween(300.0, 400.0);
    assertThat(process.value("outbox.depth.oldest.due", "orders")).isBetween(3_600.0, 3_700.0);
    assertThat(process.value("outbox.depth.ready", "nobody's")).isZero();
    assertThat(process.value("outbox.depth.later", "nobody's")).isEqualTo(1);
    assertThat(process.value("outbox.depth.oldest.ready", "nobody's")).isZero();
    assertThat(process.value("outbox.depth.oldest.due", "nobody's")).isZero();
    assertThat(process.asks()).isTrue();
    assertThat(process.registry.getMeters())
        .allMatch(meter -> "outbox".equals(meter.getId().getTag("table")));
    assertThat(threads()).singleElement().matches(Thread::isDaemon);
  }

  @Test
  void aQueueThatHasBecomeEmptyGoesToZero() {
    insert("orders", 7);
    Instance process = started(database.plain());
    await().atMost(PATIENCE).until(() -> process.shows("outbox.depth.ready", "orders", 7));

    database.update("delete from outbox");

    await().atMost(PATIENCE).until(() -> process.shows("outbox.depth.ready", "orders", 0));
    assertThat(process.value("outbox.depth.oldest.ready", "orders")).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 8})
  void ofManyProcessesOneCountsAndTheOthersReadARow(int many) {
    insert("orders", 3);
    List<Instance> all = IntStream.range(0, many).mapToObj(i -> started(database.pool(1))).toList();
    await().atMost(PATIENCE).until(() -> all.stream().anyMatch(Instance::asks));
    Instance asker = all.stream().filter(Instance::asks).findFirst().orElseThrow();
    List<Long> countsBefore = all.stream().map(Instance::counts).toList();
    List<Long> allBefore = all.stream().map(process -> process.source.executions()).toList();
    long before = asker.counts();

    await().atMost(PATIENCE).until(() -> asker.counts() >= before + 5);

    for (int i = 0; i < many; i++) {
      Instance each = all.get(i);
      long counts = each.counts() - countsBefore.get(i);
      long executions = each.source.executions() - allBefore.get(i);
      if (each == asker) {
        assertThat(each.value("outbox.depth.ready", "orders")).isEqualTo(3);
        assertThat(executions).isBetween(9L, 16L);
      } else {
        assertThat(counts).as("counts of process %d", i).isZero();
        assertThat(executions).as("looks of process %d", i).isBetween(1L, 10L);
        assertThat(each.hasQueues()).isFalse();
        assertThat(each.asks()).isFalse();
      }
      assertThat(each.source.mostLent()).isEqualTo(1);
    }
  }

  /** Not one moment may both show something, and takeover is counted from the cut. */
  private void takesOver(Instance first, Instance second, Runnable fault) {
    await().atMost(PATIENCE).until(first::asks);
    second.metrics.start();
    await().atMost(PATIENCE).until(() -> second.source.executionsOf(TAKE) > 0);

    fault.run();
    long begun = System.nanoTime();
    await()
        .atMost(PATIENCE)
        .pollInterval(Duration.ofMillis(10))
        .until(
            () -> {
              boolean shows = second.showsAnything();
              assertThat(shows && first.showsAnything()).as("both show").isFalse();
              return shows;
            });

    // two intervals and a tenth of one, and what the machine takes
    assertThat(Duration.ofNanos(System.nanoTime() - begun))
        .isLessThan(INTERVAL.multipliedBy(2).plusMillis(2_000));
    assertThat(first.showsAnything()).isFalse();
  }

  @Test
  void anotherTakesOverFromOneThatIsCutOffAndItsValuesVanish() {
    insert("orders", 3);
    try (TcpProxy proxy = new TcpProxy(database.server().host(), database.server().port())) {
      Instance first = started(through(proxy));
      Instance second = process(database.pool(1));

      takesOver(first, second, proxy::blackhole);

      assertThat(first.asks()).isFalse();
      proxy.resume();
      await().atMost(PATIENCE).until(() -> !first.hasQueues());
      assertThat(second.asks()).isTrue();
      first.metrics.stop();
    }
  }

  @Test
  void anotherTakesOverFromOneWhoseThreadIsStuckAndItsValuesVanish() throws SQLException {
    insert("orders", 3);
    HikariConfig config = new HikariConfig();
    config.setDataSource(database.plain());
    config.setMaximumPoolSize(1);
    try (HikariDataSource pool = new HikariDataSource(config)) {
      Instance first = started(pool);
      Instance second = process(database.pool(1));
      await().atMost(PATIENCE).until(first::asks);
      try (Connection taken = pool.getConnection()) { // its thread waits 30 s for it
        assertThat(taken.isClosed()).isFalse();

        takesOver(first, second, () -> {});

        assertThat(first.hasQueues()).as("its thread could not remove them").isTrue();
      }
      await().atMost(PATIENCE).until(() -> !first.hasQueues());
      assertThat(second.asks()).isTrue();
      first.metrics.stop();
    }
  }

  @Test
  void anotherTakesOverFromOneThatIsStopped() {
    insert("orders", 3);
    Instance first = started(database.pool(1));
    Instance second = process(database.pool(1));

    takesOver(first, second, first.metrics::stop);

    assertThat(first.registry.getMeters()).isEmpty();
    assertThat(database.count("outbox_sleepers")).isEqualTo(1);
  }

  @Test
  void beginsAtOnceAfterOneThatWasStopped() {
    insert("orders", 3);
    Instance first = started(database.plain());
    await().atMost(PATIENCE).until(first::asks);
    first.metrics.stop();
    assertThat(threads()).isEmpty();

    first.metrics.start();
    first.metrics.start();

    await().atMost(INTERVAL).until(first::asks);
    assertThat(threads()).hasSize(1);
  }

  @Test
  void saysOnceThatTheDatabaseIsAwayAndThatItIsBack() {
    insert("orders", 3);
    try (TcpProxy proxy = new TcpProxy(database.server().host(), database.server().port());
        CapturedLogs logs = new CapturedLogs()) {
      proxy.cut();
      Instance process = started(through(proxy));
      await().atMost(PATIENCE).until(() -> said(logs, "DEBUG", "depths cannot be counted") >= 2);
      assertThat(process.asks()).isFalse();
      assertThat(process.hasQueues()).isFalse();

      proxy.resume();

      await().atMost(PATIENCE).until(process::asks);
      await().atMost(PATIENCE).until(() -> said(logs, "INFO", "can be counted again") == 1);
      assertThat(said(logs, "WARN", "depths cannot be counted")).isEqualTo(1);
      process.metrics.stop();
    }
  }

  private static long said(CapturedLogs logs, String level, String text) {
    return logs.lines().stream()
        .filter(line -> line.startsWith(level) && line.contains(text))
        .count();
  }

  @Test
  void theServerEndsACountThatTakesTooLongAndTheNextOneWorks() throws SQLException {
    insert("orders", 3);
    try (CapturedLogs logs = new CapturedLogs();
        Connection other = database.plain().getConnection();
        Statement lock = other.createStatement()) {
      other.setAutoCommit(false);
      Instance process = started(database.pool(1));
      await().atMost(PATIENCE).until(process::asks);
      lock.execute("lock table outbox in access exclusive mode");

      await().atMost(PATIENCE).until(() -> !process.asks());
      assertThat(process.showsAnything()).isFalse();
      assertThat(
              database.list(
                  String.class,
                  "select query from pg_stat_activity where wait_event_type = 'Lock'"
                      + " and query_start < now() - interval '1 s'"))
          .isEmpty();
      other.rollback();

      await().atMost(PATIENCE).until(process::asks);
      assertThat(process.value("outbox.depth.ready", "orders")).isEqualTo(3);
      assertThat(said(logs, "WARN", "depths cannot be counted")).isEqualTo(1);
    }
  }

  @Test
  void waitsForAPoolThatIsExhaustedAndSaysSoOnce() throws SQLException {
    insert("orders", 3);
    HikariConfig config = new HikariConfig();
    config.setDataSource(database.plain());
    config.setMaximumPoolSize(1);
    config.setConnectionTimeout(250);
    try (CapturedLogs logs = new CapturedLogs();
        HikariDataSource pool = new HikariDataSource(config)) {
      Instance process;
      try (Connection taken = pool.getConnection()) {
        assertThat(taken.isClosed()).isFalse();
        process = started(pool);
        await().atMost(PATIENCE).until(() -> said(logs, "DEBUG", "no connection could be had") > 0);
      }
      await().atMost(PATIENCE).until(process::asks);
      assertThat(said(logs, "WARN", "no connection could be had")).isEqualTo(1);
      process.metrics.stop();
    }
  }

  @Test
  void stopsInTimeWhileAStatementHangsAndTheThreadEndsBehindIt() {
    insert("orders", 3);
    database.update(
        "create function slow() returns trigger language plpgsql as"
            + " 'begin perform pg_sleep(5); return new; end'");
    database.update(
        "create trigger slow before insert on outbox_sleepers for each row execute function slow()");
    try (CapturedLogs logs = new CapturedLogs()) {
      Instance instance = new Instance(database.pool(1), database.table(), Duration.ofSeconds(10));
      instances.add(instance);
      instance.metrics.start();
      await()
          .atMost(PATIENCE)
          .until(
              () ->
                  !database
                      .list(
                          Integer.class,
                          "select pid from pg_stat_activity where wait_event = 'PgSleep'")
                      .isEmpty());

      long begun = System.nanoTime();
      instance.metrics.stop();

      assertThat(Duration.ofNanos(System.nanoTime() - begun))
          .isBetween(Duration.ofMillis(1_900), Duration.ofMillis(4_500));
      assertThat(said(logs, "INFO", "did not end within 2 s")).isEqualTo(1);
      assertThat(instance.registry.getMeters()).isEmpty();
      assertThat(threads()).hasSize(1);
      await().atMost(PATIENCE).until(() -> threads().isEmpty());
      assertThat(instance.registry.getMeters()).isEmpty();
      assertThat(
              database.one(Boolean.class, "select bool_and(until <= now()) from outbox_sleepers"))
          .isTrue();
    } finally {
      database.update("drop function slow cascade");
    }
  }

  @Test
  void endsWhenTheRegistryIsClosedAndLeavesTheLeaseToOthers() {
    insert("orders", 3);
    try (CapturedLogs logs = new CapturedLogs()) {
      Instance process = started(database.plain());
      await().atMost(PATIENCE).until(process::asks);

      process.registry.close();

      await().atMost(PATIENCE).until(() -> threads().isEmpty());
      assertThat(said(logs, "INFO", "the registry is closed")).isEqualTo(1);
      assertThat(
              database.one(Boolean.class, "select bool_and(until <= now()) from outbox_sleepers"))
          .isTrue();
    }
  }

  @Test
  void refusesASecondObjectForTheSameRegistryAndTable() {
    Instance process = started(database.plain());
    PostgresOutbox outbox = PostgresOutbox.on(database.plain(), database.table());

    assertThatIllegalStateException()
        .isThrownBy(() -> OutboxDepthMetrics.on(process.registry, outbox).start())
        .withMessageContaining("depths of table 'outbox' already")
        .withMessageContaining("tableTag");
    try (OutboxDepthMetrics other =
        OutboxDepthMetrics.builder(process.registry, outbox).tableTag("other db").build()) {
      other.start();
      assertThat(process.registry.find("outbox.depth.asking").gauges()).hasSize(2);
    }
    assertThat(process.registry.find("outbox.depth.asking").gauges()).hasSize(1);
  }

  @Test
  void subscribersAndOperatorsMayAndSomebodyElseIsToldWhatIsMissing() {
    OutboxMigrations migrations = OutboxMigrations.of("box", "outbox");
    migrations.migrate(database.plain());
    String suffix = UUID.randomUUID().toString().substring(0, 8);
    List<String> roles = List.of("pub_" + suffix, "sub_" + suffix, "ops_" + suffix, "no_" + suffix);
    roles.forEach(role -> database.update("create role " + role + " login password 'secret'"));
    try {
      database.update(migrations.grantsSql(roles.get(0), roles.get(1), roles.get(2)));
      database.update("insert into box.outbox (queue, payload) values ('orders', 'x')");
      OutboxTable table = OutboxTable.named("outbox").inSchema("box");
      for (String role : roles.subList(1, 3)) {
        Instance allowed = process(as(role), table);
        allowed.metrics.start();
        await().atMost(PATIENCE).until(allowed::asks);
        assertThat(allowed.value("outbox.depth.ready", "orders")).isEqualTo(1);
        assertThat(allowed.registry.getMeters())
            .allMatch(meter -> "box.outbox".equals(meter.getId().getTag("table")));
        allowed.metrics.stop();
      }

      try (CapturedLogs logs = new CapturedLogs()) {
        String role = roles.get(3);
        database.update("grant usage on schema box to " + role);
        Instance other = process(as(role), table);
        other.metrics.start();
        await().atMost(PATIENCE).until(() -> said(logs, "DEBUG", "depths cannot be counted") >= 2);
        assertThat(said(logs, "WARN", "depths cannot be counted")).isEqualTo(1);
        assertThat(
                said(
                    logs,
                    "WARN",
                    "counting needs: grant select on \"box\".\"outbox\"; grant select, insert"
                        + " (queue, subscriber, wake_at, until), update (until) on"
                        + " \"box\".\"outbox_sleepers\""))
            .isEqualTo(1);
        assertThat(other.asks()).isFalse();

        database.update("grant select on box.outbox to " + role);
        database.update(
            "grant select, insert (queue, subscriber, wake_at, until), update (until)"
                + " on box.outbox_sleepers to "
                + role);

        await().atMost(PATIENCE).until(other::asks);
        assertThat(said(logs, "WARN", "depths cannot be counted")).isEqualTo(1);
        other.metrics.stop();
      }
    } finally {
      for (String role : roles) {
        database.update("drop owned by " + role);
        database.update("drop role " + role);
      }
    }
  }

  private PGSimpleDataSource as(String role) {
    PGSimpleDataSource source = database.plain();
    source.setUser(role);
    source.setPassword("secret");
    return source;
  }

  @Test
  void oneThatMayNotCountLeavesItToOthersThatMay() {
    insert("orders", 3);
    String role = "half_" + UUID.randomUUID().toString().substring(0, 8);
    database.update("create role " + role + " login password 'secret'");
    try {
      database.update("grant select, insert, update on outbox_sleepers to " + role);
      Instance first = started(as(role));
      await().atMost(PATIENCE).until(() -> first.counts() > 0);
      Instance second = started(database.plain());

      await().atMost(PATIENCE).until(second::asks);

      assertThat(first.asks()).isFalse();
      long counts = first.counts();
      long others = second.counts();
      await().atMost(PATIENCE).until(() -> second.counts() >= others + 3);
      assertThat(first.counts()).isEqualTo(counts);
      assertThat(second.showsAnything()).isTrue();
      first.metrics.stop();
    } finally {
      database.update("drop owned by " + role);
      database.update("drop role " + role);
    }
  }
}
