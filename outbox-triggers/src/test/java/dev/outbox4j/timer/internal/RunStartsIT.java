package dev.outbox4j.timer.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.testing.UnreadDelivery;
import dev.outbox4j.timer.CatchUp;
import dev.outbox4j.timer.Cause;
import dev.outbox4j.timer.OverlapPolicy;
import dev.outbox4j.timer.Schedule;
import dev.outbox4j.timer.Timer;
import java.sql.Connection;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** How attempts at runs are noted. */
@ExtendWith(PostgresExtension.class)
class RunStartsIT {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final Timer TIMER =
      Timer.of("t", Schedule.every(Duration.ofDays(1)))
          .catchUp(CatchUp.ALL)
          .onTime(Duration.ofDays(30))
          .overlap(OverlapPolicy.ALLOW_ALL);

  private final TestDatabase database;
  private final ExecutorService workers = Executors.newCachedThreadPool();
  private final CountDownLatch heldUp = new CountDownLatch(1);

  RunStartsIT(TestDatabase database) {
    this.database = database;
  }

  /** What a worker has of a message. */
  private record Claimed(long id, long leaseToken) implements UnreadDelivery {}

  private record Begun(long id, long message, RunKey key) {}

  @BeforeEach
  void fiveRunsThatHaveBegun() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_timer, outbox_timer_run");
    TimerStore store =
        new TimerStore(
            PostgresOutbox.on(database.plain(), database.table()),
            "shop",
            "timers.shop",
            InstantSource.system());
    store.register(List.of(TIMER), null);
    database.update(
        "update outbox_timer set due_at = now(),"
            + " decided_up_to = date_trunc('day', now(), 'UTC') - interval '5 days'");
    store.tick(Map.of("t", TIMER), Set.of(), 10);
    assertThat(runs()).hasSize(5);
  }

  @AfterEach
  void end() throws Exception {
    workers.shutdownNow();
    assertThat(workers.awaitTermination(60, TimeUnit.SECONDS)).isTrue();
  }

  private List<Begun> runs() {
    List<Long> ids = database.list(Long.class, "select id from outbox_timer_run order by instant");
    List<Begun> runs = new ArrayList<>();
    for (long id : ids) {
      Instant instant =
          database
              .one(OffsetDateTime.class, "select instant from outbox_timer_run where id = ?", id)
              .toInstant();
      long message =
          database.one(Long.class, "select message_id from outbox_timer_run where id = ?", id);
      runs.add(new Begun(id, message, new RunKey(instant, Cause.SCHEDULED, "")));
    }
    return runs;
  }

  private int attempts(Begun run) {
    return database.one(
        Integer.class, "select attempts_count from outbox_timer_run where id = ?", run.id());
  }

  private RunStarts starts(DataSource source) {
    return new RunStarts(PostgresOutbox.on(source, database.table()), "shop");
  }

  private static @Nullable StartedRun start(RunStarts starts, Begun run, long token) {
    return starts.start(TIMER, run.key(), new Claimed(run.message(), token));
  }

  /** The first of them is held up, until all others wait for it. */
  private List<Future<StartedRun>> inOneGroup(RunStarts starts, CountDownLatch go, List<Begun> runs)
      throws Exception {
    List<Future<StartedRun>> started = new ArrayList<>();
    for (Begun run : runs) {
      started.add(workers.submit(() -> start(starts, run, 1)));
      assertThat(heldUp.await(60, TimeUnit.SECONDS)).isTrue();
    }
    await().atMost(SOON).until(() -> starts.waiting() == runs.size() - 1);
    go.countDown();
    return started;
  }

  /** Before its first statement, until it may go. */
  private CountingDataSource heldUpOnce(CountDownLatch go) {
    CountingDataSource counting = new CountingDataSource(database.pool(10));
    AtomicBoolean first = new AtomicBoolean(true);
    counting.beforeEach(
        text -> {
          if (first.getAndSet(false)) {
            heldUp.countDown();
            try {
              assertThat(go.await(60, TimeUnit.SECONDS)).isTrue();
            } catch (InterruptedException e) {
              throw new IllegalStateException(e);
            }
          }
        });
    return counting;
  }

  @Test
  void beginsThatComeAtTheSameTimeAreOneStatement() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    CountingDataSource counting = heldUpOnce(go);
    List<Begun> runs = runs();

    for (Future<StartedRun> started : inOneGroup(starts(counting), go, runs)) {
      assertThat(started.get(60, TimeUnit.SECONDS).attempt()).isEqualTo(1);
    }

    assertThat(counting.executions()).as("of the first alone, and of the others").isEqualTo(2);
    assertThat(runs).allMatch(run -> attempts(run) == 1);
  }

  @Test
  void aRunWhoseRowIsLockedHoldsUpNoOtherOfItsGroup() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    RunStarts starts = starts(heldUpOnce(go));
    List<Begun> runs = runs();
    Begun locked = runs.get(4);
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select from outbox_timer_run where id = " + locked.id() + " for update");

      List<Future<StartedRun>> started = inOneGroup(starts, go, runs);

      for (Future<StartedRun> other : started.subList(0, 4)) {
        assertThat(other.get(60, TimeUnit.SECONDS).attempt()).isEqualTo(1);
      }
      assertThatThrownBy(() -> started.get(4).get(60, TimeUnit.SECONDS))
          .hasCauseInstanceOf(OutboxStoreException.class);
      stranger.rollback();
    }
    assertThat(start(starts, locked, 1).attempt()).isEqualTo(1);
  }

  /** As after its lease was lost: the one that has the greater token counts. */
  @Test
  void ofTwoAttemptsAtOneRunInAGroupTheLaterOneBegins() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    RunStarts starts = starts(heldUpOnce(go));
    List<Begun> runs = runs();
    Begun twice = runs.get(1);
    Future<StartedRun> first = workers.submit(() -> start(starts, runs.get(0), 1));
    assertThat(heldUp.await(60, TimeUnit.SECONDS)).isTrue();
    Future<StartedRun> later = workers.submit(() -> start(starts, twice, 2));
    await().atMost(SOON).until(() -> starts.waiting() == 1);
    Future<StartedRun> earlier = workers.submit(() -> start(starts, twice, 1));
    await().atMost(SOON).until(() -> starts.waiting() == 2);
    go.countDown();

    assertThat(first.get(60, TimeUnit.SECONDS).token()).isEqualTo(1);
    assertThat(later.get(60, TimeUnit.SECONDS).token()).isEqualTo(2);
    assertThat(earlier.get(60, TimeUnit.SECONDS)).as("it is not to begin").isNull();
    assertThat(attempts(twice)).isEqualTo(1);
  }

  @Test
  void anAttemptThatIsNotedTwiceCountsOnce() {
    RunStarts starts = starts(database.plain());
    Begun run = runs().get(0);

    assertThat(start(starts, run, 1).attempt()).isEqualTo(1);
    assertThat(start(starts, run, 1).attempt()).isEqualTo(1);
    assertThat(start(starts, run, 2).attempt()).isEqualTo(2);
  }

  /** Somebody has given the message of one timer to another. */
  @Test
  void aMessageOfAnotherTimerOrApplicationBeginsNoRunOfThis() {
    Begun run = runs().get(0);
    Claimed message = new Claimed(run.message(), 1);
    Timer other = Timer.of("other", TIMER.schedule());
    RunStarts ofAnother =
        new RunStarts(PostgresOutbox.on(database.plain(), database.table()), "another");

    assertThatThrownBy(() -> starts(database.plain()).start(other, run.key(), message))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("was purged or its timer removed");
    assertThatThrownBy(() -> ofAnother.start(TIMER, run.key(), message))
        .isInstanceOf(IllegalStateException.class);
    assertThat(attempts(run)).isZero();
  }
}
