package dev.outbox4j.postgres.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.QueueDepth;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** What gauges show as time goes by. */
class DepthGaugesTest {
  private static final long MINUTE = Duration.ofMinutes(1).toNanos();

  private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
  private long now = -MINUTE / 2; // nanoseconds may be negative, and pass zero
  private final DepthGauges gauges = new DepthGauges(registry, "outbox", () -> now);

  private static QueueDepth depth(String queue, long ready, long leased, long later) {
    return new QueueDepth(
        queue,
        ready,
        leased,
        later,
        false,
        ready == 0 ? Optional.empty() : Optional.of(Duration.ofSeconds(ready)),
        ready + leased == 0 ? Optional.empty() : Optional.of(Duration.ofSeconds(ready + leased)));
  }

  private void show(QueueDepth... depths) {
    gauges.show(List.of(depths), now + MINUTE);
  }

  private double value(String name, String queue) {
    return registry.get(name).tags("table", "outbox", "queue", queue).gauge().value();
  }

  private double asking() {
    return registry.get("outbox.depth.asking").tag("table", "outbox").gauge().value();
  }

  private Set<String> queues() {
    return registry.find("outbox.depth.ready").gauges().stream()
        .map(gauge -> String.valueOf(gauge.getId().getTag("queue")))
        .collect(Collectors.toSet());
  }

  @Test
  void showNothingOnceTheirTimeIsOver() {
    gauges.open();
    assertThat(asking()).isZero();
    show(depth("a", 3, 2, 1));
    now += MINUTE - 1;
    assertThat(asking()).isEqualTo(1);
    assertThat(value("outbox.depth.ready", "a")).isEqualTo(3);
    assertThat(value("outbox.depth.leased", "a")).isEqualTo(2);
    assertThat(value("outbox.depth.later", "a")).isEqualTo(1);
    assertThat(value("outbox.depth.oldest.ready", "a")).isEqualTo(3);
    assertThat(value("outbox.depth.oldest.due", "a")).isEqualTo(5);

    now++;

    assertThat(asking()).isZero();
    assertThat(registry.getMeters())
        .filteredOn(meter -> meter.getId().getTag("queue") != null)
        .hasSize(5)
        .allMatch(meter -> Double.isNaN(((Gauge) meter).value()));
  }

  @Test
  void showAQueueThatHasBecomeEmptyAsZeroForAnHour() {
    show(depth("a", 3, 2, 1), depth("b", 1, 0, 0));
    now += MINUTE;
    show(depth("b", 1, 0, 0));
    assertThat(value("outbox.depth.ready", "a")).isZero();
    assertThat(value("outbox.depth.oldest.ready", "a")).isZero();
    assertThat(value("outbox.depth.oldest.due", "a")).isZero();

    now += 59 * MINUTE;
    show(depth("b", 1, 0, 0));
    assertThat(queues()).containsExactlyInAnyOrder("a", "b");

    now += MINUTE;
    show(depth("b", 1, 0, 0));
    assertThat(queues()).containsExactly("b");
  }

  @Test
  void forgetThatAQueueWasEmptyWhenItHasRowsAgain() {
    show(depth("a", 3, 2, 1));
    now += MINUTE;
    show();
    now += 30 * MINUTE;
    show(depth("a", 1, 0, 0));
    now += 45 * MINUTE;
    show();

    assertThat(queues()).containsExactly("a");
  }

  @Test
  void addUpQueuesBeyondTheHundredth() {
    List<QueueDepth> many = new ArrayList<>();
    IntStream.range(0, 1_000).forEach(i -> many.add(depth("q" + i, 1 + i % 7, 2, 1)));
    gauges.show(many, now + MINUTE);

    assertThat(queues()).hasSize(OutboxDepthMetrics.MAX_QUEUES + 1).contains("other", "q99");
    assertThat(value("outbox.depth.leased", "other")).isEqualTo(1_800);
    assertThat(value("outbox.depth.later", "other")).isEqualTo(900);
    assertThat(value("outbox.depth.oldest.ready", "other")).isEqualTo(7);

    gauges.show(many.subList(0, 100), now + MINUTE);
    assertThat(value("outbox.depth.leased", "other")).isZero();
  }

  @Test
  void giveTheGaugesOfTheQueueThatHasBeenEmptyForLongestToANewOne() {
    List<QueueDepth> all =
        IntStream.range(0, OutboxDepthMetrics.MAX_QUEUES)
            .mapToObj(i -> depth("q" + i, 1, 0, 0))
            .toList();
    gauges.show(all, now + MINUTE);
    now += MINUTE;
    gauges.show(all.subList(0, 99), now + MINUTE);
    now += MINUTE;
    gauges.show(all.subList(0, 98), now + MINUTE);
    assertThat(queues()).hasSize(100).contains("q98", "q99");

    now += MINUTE;
    List<QueueDepth> next = new ArrayList<>(all.subList(0, 98));
    next.add(depth("new", 5, 0, 0));
    gauges.show(next, now + MINUTE);

    assertThat(queues()).hasSize(100).contains("q98", "new").doesNotContain("q99", "other");
    assertThat(value("outbox.depth.ready", "new")).isEqualTo(5);
  }

  @Test
  void addAQueueOfThatNameToTheOthers() {
    show(depth("other", 3, 0, 0), depth("a", 1, 0, 0));

    assertThat(queues()).containsExactlyInAnyOrder("other", "a");
    assertThat(value("outbox.depth.ready", "other")).isEqualTo(3);
  }

  @Test
  void doNotCallWhatMayBeReadyBehindLeasedRowsYoung() {
    show(depth("a", 0, 10_000, 0), depth("b", 0, 9_999, 0));

    assertThat(value("outbox.depth.oldest.ready", "a")).isNaN();
    assertThat(value("outbox.depth.oldest.ready", "b")).isZero();
  }

  @Test
  void areGoneWhenAnotherProcessCounts() {
    gauges.open();
    show(depth("a", 3, 2, 1));

    gauges.clear();

    assertThat(queues()).isEmpty();
    assertThat(asking()).isZero();
  }

  @Test
  void showNothingAfterTheyAreClosed() {
    gauges.open();
    show(depth("a", 3, 2, 1));
    List<Meter> before = registry.getMeters();
    gauges.close();

    show(depth("a", 3, 2, 1));

    assertThat(registry.getMeters()).isEmpty();
    assertThat(before).hasSize(6);
  }

  @Test
  void settingsOutOfRangeAreRefused() {
    OutboxDepthMetrics.Builder builder =
        OutboxDepthMetrics.builder(
            registry, PostgresOutbox.on(new PGSimpleDataSource(), OutboxTable.named("outbox")));
    for (Duration interval :
        List.of(Duration.ofMillis(999), Duration.ofMinutes(5).plusNanos(1), Duration.ZERO)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> builder.interval(interval))
          .withMessage("interval is " + interval + "; it must be from PT1S to PT5M");
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.tableTag(" "))
        .withMessageContaining("tableTag is blank");
    assertThat(builder.interval(Duration.ofSeconds(1)).interval(Duration.ofMinutes(5)).build())
        .hasToString("OutboxDepthMetrics[outbox, every PT5M]");
  }
}
