package dev.outbox4j.examples.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.codec.jackson2.Jackson2Codec;
import dev.outbox4j.migrations.MonitorMigrations;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorAlert;
import dev.outbox4j.monitor.MonitorAnswer;
import dev.outbox4j.monitor.MonitorCall;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorInstance;
import dev.outbox4j.monitor.MonitorOutcome;
import dev.outbox4j.monitor.MonitorPage;
import dev.outbox4j.monitor.MonitorQuery;
import dev.outbox4j.monitor.MonitorResult;
import dev.outbox4j.monitor.MonitorStart;
import dev.outbox4j.monitor.MonitorStatus;
import dev.outbox4j.monitor.MonitorType;
import dev.outbox4j.monitor.Monitors;
import dev.outbox4j.monitor.StartedMonitor;
import dev.outbox4j.monitor.http.MonitorHttp;
import dev.outbox4j.monitor.http.MonitorRequest;
import dev.outbox4j.monitor.http.MonitorResponse;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The samples of {@code docs/monitors.md}. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class MonitorSamplesIT {
  private static final Logger log = LoggerFactory.getLogger(MonitorSamplesIT.class);
  private static final Duration SOON = Duration.ofMinutes(1);

  private final TestDatabase database;
  private final HikariDataSource dataSource;
  private final OutboxTable table;
  private final Carrier carrier = new Carrier();

  MonitorSamplesIT(TestDatabase database) {
    this.database = database;
    this.dataSource = database.pool(10);
    this.table = database.table();
  }

  /** What is watched. */
  public record Parcel(String number) {}

  /** The service's own. */
  private static final class Carrier {
    private final Map<String, String> places = new ConcurrentHashMap<>();

    String placeOf(String number) throws IOException {
      return Optional.ofNullable(places.get(number))
          .orElseThrow(() -> new IOException("the carrier does not answer"));
    }
  }

  @BeforeEach
  void setUp() {
    // tag::migrate
    MonitorMigrations.of("public", "outbox").migrate(dataSource);
    // end::migrate
    database.update("truncate outbox, outbox_dlq, outbox_monitor, outbox_monitor_event");
    database.update("create table if not exists shipped_orders (id text)");
    database.update("truncate shipped_orders");
  }

  // tag::check
  private MonitorResult lookAt(MonitorCall<Parcel> call) throws IOException {
    String place = carrier.placeOf(call.input().number());
    if (!place.equals("delivered")) {
      return MonitorResult.again().withStatus(place);
    }
    return MonitorResult.done(
        place, OutboxMessage.to("mails").type("delivered").body(call.input()).build());
  }

  // end::check

  private MonitorInstance awaitInstance(
      MonitorControl control, String id, Predicate<MonitorInstance> condition) {
    await().atMost(SOON).until(() -> control.get(id).filter(condition).isPresent());
    return control.get(id).orElseThrow();
  }

  @Test
  void aParcelIsWatchedUntilItIsDelivered() {
    PGSimpleDataSource unpooled = database.plain();
    // tag::first
    MonitorType<Parcel> delivery =
        MonitorType.of("delivery", Parcel.class)
            .every(Duration.ofMinutes(10))
            .expiresAfter(Duration.ofDays(14));

    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    Monitors monitors =
        Monitors.builder(outbox, "shop")
            .on(delivery, this::lookAt)
            .codec(Jackson2Codec.standard())
            .listen(PgjdbcListen.on(unpooled))
            .build();
    monitors.start();
    // end::first
    carrier.places.put("17", "in a van");
    try (monitors) {
      // tag::start
      MonitorControl control = MonitorControl.of(outbox, "shop").codec(Jackson2Codec.standard());
      StartedMonitor started = control.start(delivery, "parcel-17", new Parcel("17"));
      // end::start
      assertThat(started.started()).isTrue();
      assertThat(control.start(delivery, "parcel-17", new Parcel("17")).answer())
          .isEqualTo(MonitorAnswer.ALIVE);
      MonitorInstance waiting =
          awaitInstance(control, "parcel-17", instance -> instance.iterations() == 1);
      assertThat(waiting.customStatus()).contains(Json.of("\"in a van\""));

      carrier.places.put("17", "delivered");
      // tag::by-hand
      control.wake("parcel-17");
      // end::by-hand
      MonitorInstance ended =
          awaitInstance(control, "parcel-17", instance -> instance.status().isFinished());
      assertThat(ended.outcome()).contains(MonitorOutcome.CONDITION_MET);
      assertThat(ended.output()).contains(Json.of("\"delivered\""));
    }
    assertThat(database.list(String.class, "select queue || ' ' || type from outbox"))
        .containsExactly("mails delivered");
  }

  private static void insertOrder(Connection connection, String id) throws SQLException {
    try (PreparedStatement insert =
        connection.prepareStatement("insert into shipped_orders values (?)")) {
      insert.setString(1, id);
      insert.executeUpdate();
    }
  }

  @Test
  void aWatchBeginsInTheTransactionOfItsOrder() throws SQLException {
    MonitorType<Parcel> delivery = MonitorType.of("delivery", Parcel.class);
    MonitorControl control =
        MonitorControl.of(PostgresOutbox.on(dataSource, table), "shop")
            .codec(Jackson2Codec.standard());
    try (Connection connection = dataSource.getConnection()) {
      connection.setAutoCommit(false);
      // tag::in-transaction
      insertOrder(connection, "order-4711"); // your SQL
      control.start(
          connection,
          MonitorStart.of(delivery, new Parcel("18"))
              .id("parcel-18")
              .parent("order-4711")
              .firstCheckIn(Duration.ofHours(6))
              .expiresAfter(Duration.ofDays(30)));
      connection.commit();
      // end::in-transaction
    }
    MonitorInstance instance = control.get("parcel-18").orElseThrow();
    assertThat(instance.status()).isEqualTo(MonitorStatus.PENDING);
    assertThat(instance.parent()).contains("order-4711");
    assertThat(database.count("shipped_orders")).isEqualTo(1);
  }

  // tag::signed
  private MonitorResult awaitSignature(MonitorCall<Parcel> call) {
    if (!call.events("signed").isEmpty()) {
      return MonitorResult.done(call.events("signed").get(0).payload());
    }
    return MonitorResult.again(Duration.ofHours(1)).orOn("signed");
  }

  // end::signed

  @Test
  void anEventWakesWhoWaitsForIt() {
    MonitorType<Parcel> signature = MonitorType.of("signature", Parcel.class);
    PostgresOutbox outbox = PostgresOutbox.on(dataSource, table);
    MonitorControl control = MonitorControl.of(outbox, "shop").codec(Jackson2Codec.standard());
    try (Monitors monitors =
        Monitors.builder(outbox, "shop")
            .on(signature, this::awaitSignature)
            .codec(Jackson2Codec.standard())
            .listen(PgjdbcListen.on(database.plain()))
            .build()) {
      monitors.start();
      control.start(signature, "parcel-17", new Parcel("17"));
      awaitInstance(control, "parcel-17", instance -> !instance.waitsFor().isEmpty());
      // tag::raise
      MonitorAnswer answer =
          control.raiseEvent("parcel-17", "signed", Json.of("{\"by\": \"Ann\"}"));
      // end::raise
      assertThat(answer).isEqualTo(MonitorAnswer.DONE);
      MonitorInstance ended =
          awaitInstance(control, "parcel-17", instance -> instance.status().isFinished());
      assertThat(ended.output()).contains(Json.of("{\"by\": \"Ann\"}"));
    }
  }

  @Test
  void aCheckSaysWhatBecomesOfItsInstance() {
    OutboxMessage message = OutboxMessage.to("mails").body("it is there").build();
    // tag::results
    MonitorResult soon = MonitorResult.again(Duration.ofSeconds(20));
    MonitorResult counted = MonitorResult.again().withState(3).withStatus("seen three times");
    MonitorResult either = MonitorResult.again(Duration.ofHours(1)).orOn("signed");
    MonitorResult found = MonitorResult.done("at the door", message);
    MonitorResult never = MonitorResult.fail("the carrier does not know this number");
    MonitorResult needless = MonitorResult.cancel("the order was cancelled");
    // end::results
    assertThat(List.of(soon, counted, either, found, never, needless))
        .extracting(MonitorResult::toString)
        .containsExactly(
            "again after PT20S", "again", "again after PT1H", "done", "fail", "cancel");
  }

  @Test
  void aTypeHasItsOptions() {
    // tag::options
    MonitorType<Parcel> delivery =
        MonitorType.of("delivery", Parcel.class)
            .every(Duration.ofMinutes(10))
            .expiresAfter(Duration.ofDays(14))
            .maxIterations(1_000)
            .retry(
                RetryPolicy.exponential(Duration.ofSeconds(5), 2)
                    .attempts(6)
                    .max(Duration.ofMinutes(1))
                    .maxTotalTime(Duration.ofMinutes(5))
                    .giveUpIf(failure -> failure instanceof IllegalArgumentException))
            .history(200);
    // end::options
    assertThat(delivery.every()).isEqualTo(Duration.ofMinutes(10));
    assertThat(delivery.expiresAfter()).contains(Duration.ofDays(14));
    assertThat(delivery.maxIterations()).hasValue(1_000);
    assertThat(delivery.retry().maxAttempts()).isEqualTo(6);
    assertThat(delivery.history()).isEqualTo(200);
  }

  @Test
  void instancesAreControlledAndFound() throws InterruptedException {
    MonitorType<Parcel> delivery = MonitorType.of("delivery", Parcel.class);
    MonitorControl control =
        MonitorControl.of(PostgresOutbox.on(dataSource, table), "shop")
            .codec(Jackson2Codec.standard());
    for (String number : List.of("17", "18", "19")) {
      control.start(delivery, "parcel-" + number, new Parcel(number));
    }
    // tag::control
    MonitorAnswer suspended = control.suspend("parcel-17", "the carrier is down until noon");
    MonitorAnswer resumed = control.resume("parcel-17", "it is back");
    MonitorAnswer terminated = control.terminate("parcel-17", "the parcel was lost");
    MonitorAnswer restarted = control.restart("parcel-17", "it was found");
    Optional<MonitorInstance> instance = control.await("parcel-17", Duration.ofSeconds(2));
    // end::control
    assertThat(List.of(suspended, resumed, terminated, restarted)).containsOnly(MonitorAnswer.DONE);
    assertThat(instance.orElseThrow().status()).isEqualTo(MonitorStatus.PENDING);

    List<String> ids = new ArrayList<>();
    // tag::query
    MonitorQuery waiting =
        MonitorQuery.all()
            .status(MonitorStatus.PENDING, MonitorStatus.RUNNING)
            .idPrefix("parcel-")
            .limit(2);
    MonitorPage page = control.query(waiting);
    page.instances().forEach(found -> ids.add(found.id()));
    while (page.continuation().isPresent()) {
      page = control.query(waiting.after(page.continuation().get()));
      page.instances().forEach(found -> ids.add(found.id()));
    }
    // end::query
    assertThat(ids).containsExactly("parcel-17", "parcel-18", "parcel-19");

    control.terminate("parcel-18", "over");
    Instant lastYear = Instant.now().minus(Duration.ofDays(365));
    Instant today = Instant.now().plus(Duration.ofHours(1));
    // tag::purge
    int deleted =
        control.purge(MonitorQuery.all().createdFrom(lastYear).createdBefore(today).limit(1_000));
    // end::purge
    assertThat(deleted).isEqualTo(1);
  }

  @Test
  void whatSomebodyIsToLookAtIsTold() {
    MonitorType<Parcel> delivery = MonitorType.of("delivery", Parcel.class);
    MonitorControl control =
        MonitorControl.of(PostgresOutbox.on(dataSource, table), "shop")
            .codec(Jackson2Codec.standard());
    control.start(delivery, "parcel-17", new Parcel("17"));
    database.update("update outbox_monitor set due_at = now() - interval '2 minutes'");
    // tag::alerts
    for (MonitorAlert alert : control.alerts()) {
      log.warn("monitor {}/{}: {} since {}", alert.type(), alert.id(), alert.rule(), alert.since());
    }
    // end::alerts
    assertThat(control.alerts())
        .extracting(alert -> alert.id() + " " + alert.rule())
        .containsExactly("parcel-17 OVERDUE");
  }

  @Test
  void aRequestIsAnswered() {
    MonitorType<Parcel> delivery = MonitorType.of("delivery", Parcel.class);
    MonitorControl control =
        MonitorControl.of(PostgresOutbox.on(dataSource, table), "shop")
            .codec(Jackson2Codec.standard());
    // tag::http
    MonitorHttp http =
        MonitorHttp.builder(control).type(delivery).baseUrl("https://shop.example/ops").build();
    // end::http
    MonitorResponse response =
        http.handle(
            MonitorRequest.of(
                "POST",
                "/monitors/delivery/parcel-17",
                null,
                "{\"number\":\"17\"}".getBytes(StandardCharsets.UTF_8)));
    assertThat(response.status()).isEqualTo(202);
    assertThat(response.headers())
        .containsEntry("Location", "https://shop.example/ops/instances/parcel-17");
  }
}
