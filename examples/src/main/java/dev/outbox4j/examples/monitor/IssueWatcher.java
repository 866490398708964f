package dev.outbox4j.examples.monitor;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.monitor.Monitors;
import dev.outbox4j.monitor.http.MonitorHttp;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.NotificationSource;
import io.javalin.Javalin;
import java.net.URI;
import javax.sql.DataSource;
import org.flywaydb.core.Flyway;

/**
 * The whole service: monitors that watch repositories, an HTTP server to start and control them,
 * and a subscriber that is told of repositories with too many open issues.
 */
final class IssueWatcher implements AutoCloseable {
  /** Whose monitors they are. */
  static final String APPLICATION = "issues";

  /** Two workers of each, which have one connection each; three for either subscriber. */
  static final int CONNECTIONS = 10;

  private static final String OUTBOX = "outbox";
  private static final int WORKERS = 2;

  private final Monitors monitors;
  private final OutboxSubscriber alerts;
  private final Javalin http;

  /**
   * Puts it together; nothing is done yet.
   *
   * @param dataSource a pool of {@value #CONNECTIONS} connections
   * @param notifications what tells of messages
   * @param type {@link OpenIssuesCheck#TYPE}, or one with other times
   * @param api where the API is
   */
  IssueWatcher(
      DataSource dataSource,
      NotificationSource notifications,
      MonitorType<IssueWatch> type,
      URI api) {
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, OutboxTable.named(OUTBOX));
    Jackson2Codec codec = Jackson2Codec.standard();
    monitors =
        Monitors.builder(outbox, APPLICATION)
            .on(type, new OpenIssuesCheck(new IssuesApi(api)))
            .codec(codec)
            .listen(notifications)
            .subscriber(settings -> settings.workers(WORKERS))
            .build();
    alerts =
        OutboxSubscriber.builder(IssueAlert.QUEUE)
            .store(outbox.store())
            .listen(notifications)
            .codec(codec)
            .on(IssueAlert.TYPE, IssueAlert.class, outbox.transactional(AlertHandler::handle))
            .workers(WORKERS)
            .deadLetters(DeadLetterQueue.in(OUTBOX + "_dlq"))
            .build();
    MonitorControl control = MonitorControl.of(outbox, APPLICATION).codec(codec);
    MonitorRoutes routes = new MonitorRoutes(MonitorHttp.builder(control).type(type).build());
    http =
        Javalin.create(
            config -> {
              config.startup.showJavalinBanner = false;
              config.startup.showOldJavalinVersionWarning = false;
              routes.addTo(config.routes);
            });
  }

  /**
   * Makes the tables.
   *
   * @param dataSource connections of the tables' owner, which find the schema first
   * @param schema where they are to be
   */
  static void migrate(DataSource dataSource, String schema) {
    OutboxMigrations.of(schema, OUTBOX).migrate(dataSource);
    MonitorMigrations.of(schema, OUTBOX).migrate(dataSource);
    Flyway.configure()
        .dataSource(dataSource)
        .locations("classpath:dev/outbox4j/examples/monitor/migrations")
        .defaultSchema(schema)
        .table("issues_schema_history")
        .baselineOnMigrate(true) // the outbox is in the schema already
        .baselineVersion("0")
        .load()
        .migrate();
  }

  /**
   * Begins to check and to tell, then to serve.
   *
   * @param port the HTTP port; 0 for any that is free
   */
  void start(int port) {
    alerts.start();
    monitors.start();
    http.start(port);
  }

  /** {@return where it serves} */
  URI url() {
    return URI.create("http://localhost:" + http.port());
  }

  /** Serves no more, and waits for the checks and handlers in progress. */
  @Override
  public void close() {
    http.stop();
    monitors.stop();
    alerts.stop();
  }
}
