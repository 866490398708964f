package dev.outbox4j.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.outbox4j.FailureReason;
import dev.outbox4j.SubscriberEvents.Phase;
import dev.outbox4j.SubscriberEvents.Setup;
import dev.outbox4j.SubscriberHealth;
import dev.outbox4j.SubscriberHealth.Listener;
import dev.outbox4j.SubscriberState;
import dev.outbox4j.testing.CapturedLogs;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class MicrometerMetricsTest {
  private static final FakeDelivery PLACED = new FakeDelivery("orders", "order.placed");

  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
  private final MicrometerMetrics metrics = MicrometerMetrics.on(registry);

  @AfterEach
  void close() {
    registry.close();
  }

  @Test
  void countsWhatBecomesOfMessagesBySubscriberQueueAndType() {
    start("s");
    Events.all(metrics, "s", PLACED);
    metrics.acked("s", PLACED);
    metrics.acked("s", new FakeDelivery("orders", "order.cancelled"));
    metrics.acked("s", new FakeDelivery("invoices", "order.placed"));

    assertThat(ofMessage("outbox.acked").count()).isEqualTo(2);
    assertThat(ofMessage("outbox.nacked.retried").count()).isEqualTo(1);
    assertThat(ofMessage("outbox.rescheduled").count()).isEqualTo(1);
    assertThat(ofMessage("outbox.handler.timeout").count()).isEqualTo(1);
    for (FailureReason reason : FailureReason.values()) {
      assertThat(ofMessage("outbox.nacked.terminal", "reason", reason.code()).count()).isEqualTo(1);
      assertThat(ofMessage("outbox.dlq.written", "reason", reason.code()).count()).isEqualTo(1);
    }
    for (Phase phase : Phase.values()) {
      String tag = phase.name().toLowerCase(Locale.ROOT);
      assertThat(ofPhase("outbox.lease.lost", tag).count()).isEqualTo(1);
      assertThat(ofPhase("outbox.outcome.unknown", tag).count()).isEqualTo(1);
    }
  }

  @Test
  void countsATerminalFailureWithoutADeadLetterTableAsNotWritten() {
    start("s");

    metrics.deadLettered("s", PLACED, FailureReason.REJECTED, false);

    assertThat(ofMessage("outbox.nacked.terminal", "reason", "rejected").count()).isEqualTo(1);
    assertThat(ofMessage("outbox.dlq.written", "reason", "rejected").count()).isZero();
  }

  @Test
  void timesHandlersByTheirEndAndMessagesFromTheirCreation() {
    start("s");
    Events.all(metrics, "s", PLACED);

    Timer succeeded = registry.get("outbox.handler").tag("outcome", "success").timer();
    Timer failed = registry.get("outbox.handler").tag("outcome", "failure").timer();
    assertThat(succeeded.count()).isEqualTo(1);
    assertThat(succeeded.totalTime(TimeUnit.MILLISECONDS)).isEqualTo(10);
    assertThat(failed.count()).isEqualTo(1);
    assertThat(failed.totalTime(TimeUnit.MILLISECONDS)).isEqualTo(30);
    assertThat(registry.get("outbox.dispatch.age").timer().totalTime(TimeUnit.SECONDS))
        .isEqualTo(4);
  }

  @Test
  void countsWhatASubscriberDoes() {
    start("s");
    Events.all(metrics, "s", PLACED);

    assertThat(registry.get("outbox.claim").timer().count()).isEqualTo(2);
    assertThat(counter("outbox.claim.empty")).isEqualTo(1);
    assertThat(registry.get("outbox.claim.batch").summary().count()).isEqualTo(1);
    assertThat(registry.get("outbox.claim.batch").summary().totalAmount()).isEqualTo(5);
    assertThat(counter("outbox.renewed")).isEqualTo(11);
    assertThat(counter("outbox.released")).isEqualTo(13);
    assertThat(counter("outbox.listener.connects")).isEqualTo(2);
    assertThat(counter("outbox.listener.reconnects")).isEqualTo(1);
    assertThat(counter("outbox.listener.disconnects")).isEqualTo(1);
    assertThat(registry.get("outbox.store.failures").tag("operation", "claim").counter().count())
        .isEqualTo(1);
    assertThat(counter("outbox.drain.timeout")).isEqualTo(1);
  }

  @Test
  void readsGaugesFromTheHealthInMemory() {
    AtomicReference<SubscriberHealth> health = new AtomicReference<>(Events.running());
    metrics.started("s", Events.FULL, health::get);

    assertThat(gauge("outbox.inflight")).isEqualTo(7);
    assertThat(gauge("outbox.running")).isEqualTo(3);
    assertThat(gauge("outbox.dlq.waiting")).isEqualTo(2);
    assertThat(gauge("outbox.order.buckets")).isEqualTo(12);
    assertThat(gauge("outbox.order.blocked.keys")).isEqualTo(4);
    assertThat(gauge("outbox.order.keys.on.hold")).isEqualTo(3);
    assertThat(gauge("outbox.paused.queues")).isEqualTo(1);
    assertThat(gauge("outbox.inflight.oldest")).isEqualTo(1.5, within(1e-9));
    assertThat(gauge("outbox.stuck")).isEqualTo(0.25, within(1e-9));
    assertThat(gauge("outbox.listener.up")).isEqualTo(1);
    assertThat(gauge("outbox.healthy")).as("dead letters are waiting").isZero();

    health.set(Events.health(SubscriberState.RUNNING, Listener.DOWN));
    assertThat(gauge("outbox.listener.up")).isZero();
    health.set(Events.health(SubscriberState.RUNNING, Listener.NONE));
    assertThat(gauge("outbox.listener.up")).isNaN();
    health.set(
        new SubscriberHealth(
            "s",
            SubscriberState.RUNNING,
            Optional.empty(),
            Optional.empty(),
            Optional.empty(),
            false,
            Optional.empty(),
            Listener.NONE,
            0,
            0,
            Optional.empty(),
            Duration.ZERO,
            0,
            Optional.empty(),
            Optional.empty()));
    assertThat(gauge("outbox.healthy")).isEqualTo(1);
  }

  @Test
  void hasTheMetersOfASubscriberAtZeroFromItsStart() {
    start("s");
    start("other");

    assertThat(counter("outbox.claim.empty", "s")).isZero();
    assertThat(counter("outbox.drain.timeout", "s")).isZero();
    assertThat(registry.find("outbox.store.failures").tag("subscriber", "s").counters())
        .extracting(counter -> counter.getId().getTag("operation"))
        .containsExactlyInAnyOrder(
            "claim", "ack", "retry", "reschedule", "dead_letter", "renew", "release");
    assertThat(registry.find("outbox.acked").counters()).isEmpty();
  }

  @Test
  void removesOnlyTheGaugesWhenASubscriberStops() {
    start("s");
    start("other");
    Events.all(metrics, "s", PLACED);
    List<Meter.Id> counting = idsExceptGauges();

    metrics.stopped("s");

    assertThat(registry.find("outbox.inflight").tag("subscriber", "s").meters()).isEmpty();
    assertThat(registry.find("outbox.inflight").tag("subscriber", "other").meters()).hasSize(1);
    metrics.stopped("other");
    assertThat(registry.getMeters())
        .extracting(Meter::getId)
        .containsExactlyInAnyOrderElementsOf(counting);
  }

  @Test
  void showsAScrapeAfterTheStopWhatWasCountedLast() {
    PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    MicrometerMetrics scraped = MicrometerMetrics.on(prometheus);
    scraped.started("s", Events.FULL, Events::running);
    scraped.acked("s", PLACED);
    scraped.drainTimedOut("s", 1);
    scraped.stopped("s");

    assertThat(prometheus.scrape())
        .contains("outbox_drain_timeout_total{subscriber=\"s\"} 1.0")
        .contains("outbox_acked_total{queue=\"orders\",subscriber=\"s\",type=\"order.placed\"} 1.0")
        .doesNotContain("outbox_inflight");

    scraped.started("s", Events.FULL, Events::running);
    scraped.drainTimedOut("s", 1);
    assertThat(prometheus.scrape())
        .contains("outbox_drain_timeout_total{subscriber=\"s\"} 2.0")
        .contains("outbox_inflight{subscriber=\"s\"} 7.0");
    prometheus.close();
  }

  @Test
  void hasAllMetersOfATypeAtZeroFromItsFirstMessage() {
    start("s");

    metrics.dispatched("s", PLACED, Duration.ZERO);

    assertThat(ofMessage("outbox.acked").count()).isZero();
    assertThat(ofMessage("outbox.dlq.written", "reason", "max_deliveries").count()).isZero();
  }

  @Test
  void hasSeventeenMetersPerTypeAndCountsPhasesPerSubscriber() {
    start("s");
    assertThat(ofPhase("outbox.lease.lost", "ack").count()).isZero();
    int before = registry.getMeters().size();

    metrics.acked("s", PLACED);

    assertThat(registry.getMeters()).hasSize(before + 17);
  }

  @Test
  void hasNoMeterOfWhatASubscriberWasNotBuiltToDo() {
    metrics.started("s", new Setup(false, false, false, false), Events::running);
    int before = registry.getMeters().size();
    metrics.acked("s", PLACED);

    assertThat(registry.getMeters())
        .hasSize(before + 10)
        .extracting(meter -> meter.getId().getName())
        .doesNotContain(
            "outbox.dlq.written",
            "outbox.dlq.waiting",
            "outbox.handler.timeout",
            "outbox.listener.connects",
            "outbox.listener.reconnects",
            "outbox.listener.disconnects",
            "outbox.listener.up");
    assertThat(tagsOf("outbox.nacked.terminal", "reason"))
        .containsExactlyInAnyOrder("retry_terminal", "rejected", "undecodable", "expired");
    assertThat(tagsOf("outbox.lease.lost", "phase"))
        .containsExactlyInAnyOrder("dispatch", "ack", "retry", "reschedule", "renew", "release");
    assertThat(tagsOf("outbox.outcome.unknown", "phase"))
        .containsExactlyInAnyOrder("ack", "retry", "reschedule", "release");
    assertThat(tagsOf("outbox.store.failures", "operation"))
        .containsExactlyInAnyOrder("claim", "ack", "retry", "reschedule", "renew", "release");
  }

  @Test
  void hasNoUnknownOutcomeOfStepsWithoutAnOutcome() {
    start("s");

    assertThat(tagsOf("outbox.outcome.unknown", "phase"))
        .containsExactlyInAnyOrder("ack", "retry", "reschedule", "dead_letter", "release");
  }

  @Test
  void countsAtZeroWhatOnlyALaterSubscriberOfTheNameIsBuiltToDo() {
    metrics.started("s", new Setup(false, false, true, true), Events::running);
    metrics.acked("s", PLACED);
    assertThat(registry.find("outbox.dlq.written").counters()).isEmpty();
    assertThat(registry.find("outbox.listener.up").gauges()).isEmpty();

    start("s");

    assertThat(ofMessage("outbox.dlq.written", "reason", "rejected").count()).isZero();
    assertThat(counter("outbox.listener.connects")).isZero();
    assertThat(gauge("outbox.listener.up")).isEqualTo(1);
    assertThat(gauge("outbox.dlq.waiting")).isEqualTo(4);
  }

  @Test
  void ignoresEventsBeforeTheFirstStart() {
    Events.all(metrics, "s", PLACED);
    metrics.stopped("s");

    assertThat(registry.getMeters()).isEmpty();
  }

  @Test
  void goesOnCountingWhenASubscriberIsStartedAgain() {
    start("s");
    metrics.acked("s", PLACED);
    metrics.stopped("s");
    metrics.acked("s", PLACED);
    start("s");
    metrics.acked("s", PLACED);

    assertThat(ofMessage("outbox.acked").count()).isEqualTo(3);
    assertThat(gauge("outbox.inflight")).isEqualTo(7);
  }

  @Test
  void countsASubscriberOnceThatStartsAgainBeforeItsStopWasTold() {
    Supplier<SubscriberHealth> health = Events::running;
    metrics.started("s", Events.FULL, health);
    metrics.started("s", Events.FULL, health);
    assertThat(gauge("outbox.inflight")).isEqualTo(7);

    metrics.stopped("s");
    assertThat(gauge("outbox.inflight")).isEqualTo(7);

    metrics.stopped("s");
    assertThat(registry.find("outbox.inflight").meters()).isEmpty();
  }

  @Test
  void addsUpSubscribersOfOneNameAndKeepsTheirGaugesUntilTheLastStops() {
    AtomicReference<SubscriberHealth> first = new AtomicReference<>(Events.running());
    AtomicReference<SubscriberHealth> second =
        new AtomicReference<>(Events.health(SubscriberState.RUNNING, Listener.DOWN));
    metrics.started("s", Events.FULL, first::get);
    metrics.started("s", Events.FULL, second::get);
    metrics.acked("s", PLACED);

    assertThat(gauge("outbox.inflight")).isEqualTo(14);
    assertThat(gauge("outbox.inflight.oldest")).isEqualTo(1.5, within(1e-9));
    assertThat(gauge("outbox.listener.up")).isZero();

    second.set(Events.health(SubscriberState.STOPPED, Listener.DOWN));
    metrics.stopped("s");
    assertThat(gauge("outbox.inflight")).isEqualTo(7);
    assertThat(gauge("outbox.listener.up")).isEqualTo(1);

    metrics.stopped("s");
    assertThat(registry.find("outbox.inflight").meters()).isEmpty();
    assertThat(ofMessage("outbox.acked").count()).isEqualTo(1);
  }

  @Test
  void callsAMissingTypeNone() {
    start("s");

    metrics.acked("s", new FakeDelivery("orders", (String) null));
    metrics.acked("s", new FakeDelivery("orders", ""));

    assertThat(registry.get("outbox.acked").tag("type", "none").counter().count()).isEqualTo(2);
  }

  @Test
  void tellsAHundredTypesApartAndCountsAllFurtherOnesTogether() {
    start("s");
    for (int i = 0; i < 1000; i++) {
      metrics.acked("s", new FakeDelivery(i % 2 == 0 ? "orders" : "invoices", "type-" + i));
    }
    metrics.acked("s", new FakeDelivery("invoices", "type-0"));

    Set<String> types =
        registry.find("outbox.acked").counters().stream()
            .map(counter -> counter.getId().getTag("type"))
            .collect(Collectors.toSet());
    assertThat(types).hasSize(MicrometerMetrics.MAX_TYPES + 1).contains("other", "type-99");
    assertThat(types).doesNotContain("type-100");
    assertThat(
            registry.find("outbox.acked").tag("type", "other").counters().stream()
                .mapToDouble(Counter::count)
                .sum())
        .isEqualTo(900);
    assertThat(
            registry
                .get("outbox.acked")
                .tags("queue", "invoices", "type", "type-0")
                .counter()
                .count())
        .isEqualTo(1);
  }

  @Test
  void losesNoCountWhenManyThreadsMeetTheSameTypesAtOnce() throws Exception {
    int threads = 8;
    int rounds = 2000;
    start("s");
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    CountDownLatch go = new CountDownLatch(1);
    List<Future<?>> all = new ArrayList<>();
    for (int t = 0; t < threads; t++) {
      all.add(
          pool.submit(
              () -> {
                go.await();
                for (int i = 0; i < rounds; i++) {
                  FakeDelivery delivery = new FakeDelivery("q" + i % 3, "t" + i % 150);
                  metrics.dispatched("s", delivery, Duration.ofMillis(1));
                  metrics.acked("s", delivery);
                  metrics.storeFailed("s", "ack", new IllegalStateException());
                }
                return null;
              }));
    }
    go.countDown();
    for (Future<?> each : all) {
      each.get(30, TimeUnit.SECONDS);
    }
    pool.shutdown();

    assertThat(registry.find("outbox.acked").counters().stream().mapToDouble(Counter::count).sum())
        .isEqualTo(threads * rounds);
    assertThat(registry.find("outbox.dispatch.age").timers().stream().mapToLong(Timer::count).sum())
        .isEqualTo((long) threads * rounds);
    assertThat(registry.get("outbox.store.failures").tag("operation", "ack").counter().count())
        .isEqualTo(threads * rounds);
    assertThat(
            registry.find("outbox.acked").counters().stream()
                .map(counter -> counter.getId().getTag("type"))
                .distinct())
        .hasSize(MicrometerMetrics.MAX_TYPES + 1);
  }

  @Test
  void losesNoCountAndLeavesNoGaugeWhenItStopsWhileMessagesStillCome() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(2);
    for (int fresh = 0; fresh < 20; fresh++) { // to look through a large registry takes long
      SimpleMeterRegistry few = new SimpleMeterRegistry();
      MicrometerMetrics metricsOfFew = MicrometerMetrics.on(few);
      for (int round = 0; round < 10; round++) {
        stopWhileMessagesCome(pool, metricsOfFew, "q" + round);
        assertThat(few.find("outbox.inflight").meters()).as("round %d", round).isEmpty();
      }
      assertThat(few.find("outbox.acked").counters().stream().mapToDouble(Counter::count).sum())
          .isEqualTo(10 * 20);
      few.close();
    }
    pool.shutdown();
  }

  private static void stopWhileMessagesCome(
      ExecutorService pool, MicrometerMetrics metrics, String queue) throws Exception {
    metrics.started("s", Events.FULL, Events::running);
    CountDownLatch go = new CountDownLatch(1);
    Future<?> late =
        pool.submit(
            () -> {
              go.await();
              for (int i = 0; i < 20; i++) {
                metrics.acked("s", new FakeDelivery(queue, "t" + i));
              }
              return null;
            });
    go.countDown();
    metrics.stopped("s");
    late.get(30, TimeUnit.SECONDS);
  }

  @Test
  void aSecondObjectWithTheSameNameInTheSameRegistryIsTold() {
    try (CapturedLogs logs = new CapturedLogs()) {
      start("s");
      MicrometerMetrics.on(registry).started("other", Events.FULL, Events::running);
      assertThat(logs.lines()).isEmpty();

      MicrometerMetrics.on(registry).started("s", Events.FULL, Events::running);

      assertThat(logs.lines())
          .first()
          .asString()
          .contains("[s] another MicrometerMetrics has registered", "Use one MicrometerMetrics");
    }
  }

  private void start(String subscriber) {
    metrics.started(subscriber, Events.FULL, Events::running);
  }

  private Counter ofMessage(String name, String... further) {
    return registry
        .get(name)
        .tags("subscriber", "s", "queue", "orders", "type", "order.placed")
        .tags(further)
        .counter();
  }

  private Counter ofPhase(String name, String phase) {
    return registry.get(name).tags("subscriber", "s", "phase", phase).counter();
  }

  private List<Meter.Id> idsExceptGauges() {
    return registry.getMeters().stream()
        .filter(meter -> !(meter instanceof Gauge))
        .map(Meter::getId)
        .toList();
  }

  private double counter(String name) {
    return registry.get(name).counter().count();
  }

  private double counter(String name, String subscriber) {
    return registry.get(name).tag("subscriber", subscriber).counter().count();
  }

  private List<String> tagsOf(String name, String tag) {
    return registry.find(name).counters().stream()
        .map(counter -> counter.getId().getTag(tag))
        .toList();
  }

  private double gauge(String name) {
    Meter meter = registry.get(name).meter();
    return ((Gauge) meter).value();
  }
}
