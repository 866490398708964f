package dev.outbox4j.internal.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.internal.state.EngineParts;
import dev.outbox4j.internal.state.HandlerRun;
import dev.outbox4j.internal.state.HeldRow;
import dev.outbox4j.internal.state.HeldRows;
import dev.outbox4j.testing.CapturedLogs;
import dev.outbox4j.testing.InMemoryStore;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class StuckWorkersTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private final InMemoryStore store = new InMemoryStore(Clock.systemUTC());
  private final HeldRows registry = new HeldRows();
  private final AtomicBoolean allBusy = new AtomicBoolean(true);
  private final long begin = System.nanoTime();
  private HandlerRun overdue;
  private final StuckWorkers stuck =
      new StuckWorkers("orders", registry, 2, allBusy::get, () -> overdue, begin);
  private final CapturedLogs logs = new CapturedLogs();

  @AfterEach
  void close() {
    logs.close();
  }

  private List<HeldRow> claimed(int rows) {
    return EngineParts.claim(store, registry, rows, Duration.ofMinutes(1), begin);
  }

  private void lookEachSecond(long from, long to) {
    for (long second = from; second <= to; second++) {
      stuck.look(begin + second * SECOND);
    }
  }

  @Test
  void namesTheOldestMessageOnceAMinute() {
    List<HeldRow> rows = claimed(2);
    rows.get(0).start(begin - 5 * SECOND);
    rows.get(1).start(begin);
    assertThat(stuck.stuckFor(begin)).isZero();
    lookEachSecond(0, 29);
    assertThat(logs.lines()).isEmpty();
    assertThat(stuck.stuckFor(begin + 29 * SECOND)).isEqualTo(Duration.ofSeconds(29));
    lookEachSecond(30, 89);
    assertThat(logs.lines())
        .singleElement()
        .asString()
        .startsWith("WARN")
        .contains("all 2 workers have been busy with the same messages for 30 s")
        .contains("message " + rows.get(0).id() + " of queue 'orders', without a type, for 35 s");
    lookEachSecond(90, 120);
    assertThat(logs.lines()).hasSize(2);
  }

  @Test
  void saysNothingWhileMessagesBegin() {
    List<HeldRow> rows = claimed(6);
    for (int i = 0; i < rows.size(); i++) {
      rows.get(i).start(begin + i * 25L * SECOND);
      lookEachSecond(i * 25L, i * 25L + 24);
      assertThat(stuck.stuckFor(begin + (i * 25L + 24) * SECOND)).isEqualTo(Duration.ofSeconds(24));
    }
    assertThat(logs.lines()).isEmpty();
  }

  @Test
  void saysNothingWhileAWorkerIsFree() {
    claimed(1).get(0).start(begin);
    lookEachSecond(0, 20);
    allBusy.set(false);
    lookEachSecond(21, 21);
    assertThat(stuck.stuckFor(begin + 21 * SECOND)).isZero();
    allBusy.set(true);
    lookEachSecond(22, 51);
    assertThat(logs.lines()).isEmpty();
    lookEachSecond(52, 52);
    assertThat(logs.lines()).hasSize(1);
  }

  @Test
  void saysThatHandlersIgnoreTheirTimeout() {
    HeldRow row = claimed(1).get(0);
    HandlerRun run = Objects.requireNonNull(row.start(begin));
    run.expire();
    overdue = run;
    lookEachSecond(0, 30);
    assertThat(logs.lines())
        .singleElement()
        .asString()
        .contains("go on past handlerTimeout")
        .contains("message " + row.id() + " of queue 'orders', without a type, for 30 s");
  }

  @Test
  void saysThatTheExecutorHasBegunNone() {
    lookEachSecond(0, 30);
    assertThat(logs.lines()).singleElement().asString().endsWith("has not begun their handlers");
  }
}
