package dev.outbox4j.monitor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import javax.sql.DataSource;

/** Monitors of an application on a real server, as tests need them. */
final class MonitorKit implements AutoCloseable {
  static final Duration SOON = Duration.ofMinutes(1);
  static final Duration LONG = Duration.ofHours(1);
  static final String APPLICATION = "shop";

  private final TestDatabase database;
  private final PostgresOutbox outbox;
  private final MonitorControl control;
  private final List<Monitors> started = new ArrayList<>();

  MonitorKit(TestDatabase database, DataSource dataSource) {
    this.database = database;
    this.outbox = PostgresOutbox.on(dataSource, database.table());
    this.control = MonitorControl.of(outbox, APPLICATION);
  }

  static void migrate(TestDatabase database) {
    database.migrate(MonitorMigrations.of("public", "outbox"), MonitorMigrations::migrate);
    database.update("truncate outbox, outbox_dlq, outbox_monitor, outbox_monitor_event");
  }

  PostgresOutbox outbox() {
    return outbox;
  }

  MonitorControl control() {
    return control;
  }

  Monitors.Builder builder() {
    return Monitors.builder(outbox, APPLICATION)
        .listen(PgjdbcListen.on(database.plain()))
        .subscriber(settings -> settings.gracefulTimeout(Duration.ofSeconds(5)));
  }

  Monitors start(Monitors.Builder builder) {
    Monitors monitors = builder.build();
    started.add(monitors);
    monitors.start();
    return monitors;
  }

  Monitors start(MonitorType<Json> type, MonitorCheck<Json> check) {
    return start(builder().on(type, check));
  }

  MonitorInstance get(String id) {
    return control.get(id).orElseThrow();
  }

  MonitorInstance awaitInstance(String id, Predicate<MonitorInstance> condition) {
    await().atMost(SOON).until(() -> control.get(id).filter(condition).isPresent());
    return get(id);
  }

  MonitorInstance awaitStatus(String id, MonitorStatus status) {
    await()
        .atMost(SOON)
        .untilAsserted(
            () -> assertThat(control.get(id).map(MonitorInstance::status)).contains(status));
    return get(id);
  }

  /** The bodies of messages to a queue, in the order of their ids. */
  List<String> published(String queue) {
    return database.list(
        String.class,
        "select convert_from(payload, 'UTF8') from outbox where queue = ? order by id",
        queue);
  }

  long wakes() {
    return database.count("outbox where queue = 'monitors." + APPLICATION + "'");
  }

  List<HistoryEntry.Kind> history(String id) {
    List<HistoryEntry.Kind> kinds = new ArrayList<>();
    control.history(id, 1_000).forEach(entry -> kinds.add(0, entry.kind()));
    return kinds;
  }

  static OutboxMessage alert(String body) {
    return OutboxMessage.to("alerts").body(body).build();
  }

  @Override
  public void close() {
    started.forEach(Monitors::stop);
    started.clear();
  }
}
