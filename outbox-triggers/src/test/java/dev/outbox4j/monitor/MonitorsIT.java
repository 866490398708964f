package dev.outbox4j.monitor;

import static dev.outbox4j.monitor.HistoryEntry.Kind.ATTEMPT_FAILED;
import static dev.outbox4j.monitor.HistoryEntry.Kind.CHECKED;
import static dev.outbox4j.monitor.HistoryEntry.Kind.COMPLETED;
import static dev.outbox4j.monitor.HistoryEntry.Kind.FAILED;
import static dev.outbox4j.monitor.HistoryEntry.Kind.STARTED;
import static dev.outbox4j.monitor.MonitorKit.LONG;
import static dev.outbox4j.monitor.MonitorKit.SOON;
import static dev.outbox4j.monitor.MonitorKit.alert;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.RetryPolicy;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** Monitors on a real server: what a check says is what becomes of its instance. */
@ExtendWith(PostgresExtension.class)
class MonitorsIT {
  private static final MonitorType<Json> WATCH = MonitorType.of("watch").every(LONG);
  private static final Duration AT_ONCE = Duration.ZERO;

  private final TestDatabase database;
  private final MonitorKit kit;
  private final MonitorControl control;

  MonitorsIT(TestDatabase database) {
    this.database = database;
    this.kit = new MonitorKit(database, database.pool(12));
    this.control = kit.control();
  }

  @BeforeEach
  void setUp() {
    MonitorKit.migrate(database);
  }

  @AfterEach
  void stop() {
    kit.close();
  }

  @Test
  void looksUntilItIsSoThenTellsSomeoneOnceAndStops() {
    List<Optional<Json>> states = new CopyOnWriteArrayList<>();
    kit.start(
        WATCH,
        call -> {
          states.add(call.state());
          return call.iteration() < 3
              ? MonitorResult.again(AT_ONCE)
                  .withState(Json.of("{\"seen\":" + call.iteration() + "}"))
                  .withStatus(Json.of("\"still looking\""))
              : MonitorResult.done(Json.of("{ \"open\" : 3 }"), alert("three are open"));
        });

    StartedMonitor started = control.start(WATCH, "issues", Json.of("{\"threshold\":3}"));

    assertThat(started.started()).isTrue();
    MonitorInstance ended = kit.awaitStatus("issues", MonitorStatus.COMPLETED);
    assertThat(ended.outcome()).contains(MonitorOutcome.CONDITION_MET);
    assertThat(ended.execution()).isEqualTo(started.execution());
    assertThat(ended.iterations()).isEqualTo(3);
    assertThat(ended.output()).contains(Json.of("{ \"open\" : 3 }"));
    assertThat(ended.customStatus()).contains(Json.of("\"still looking\""));
    assertThat(ended.input()).contains(Json.of("{\"threshold\":3}"));
    assertThat(ended.dueAt()).isEmpty();
    assertThat(ended.startedAt()).isPresent();
    assertThat(ended.endedAt()).isPresent();
    assertThat(states)
        .containsExactly(
            Optional.empty(),
            Optional.of(Json.of("{\"seen\":1}")),
            Optional.of(Json.of("{\"seen\":2}")));
    assertThat(kit.published("alerts")).containsExactly("three are open");
    assertThat(kit.wakes()).isZero();
    assertThat(kit.history("issues")).containsExactly(STARTED, CHECKED, CHECKED, COMPLETED);
  }

  @Test
  void waitsFromTheEndOfTheCheckByItsTypeOrByWhatTheCheckSays() {
    kit.start(
        WATCH,
        call ->
            call.id().equals("own")
                ? MonitorResult.again(Duration.ofDays(3))
                : MonitorResult.again());
    control.start(WATCH, "own", Json.NULL);
    control.start(WATCH, "type", Json.NULL);

    for (String id : List.of("own", "type")) {
      MonitorInstance waiting = kit.awaitInstance(id, instance -> instance.iterations() == 1);
      Duration wait = id.equals("own") ? Duration.ofDays(3) : LONG;
      assertThat(waiting.status()).isEqualTo(MonitorStatus.RUNNING);
      assertThat(Duration.between(waiting.updatedAt(), waiting.dueAt().orElseThrow()))
          .isBetween(wait.minusSeconds(1), wait.plusSeconds(1));
    }
    assertThat(
            database.count(
                "outbox o join outbox_monitor m on m.message_id = o.id"
                    + " where abs(extract(epoch from o.available_at - m.due_at)) < 1"))
        .isEqualTo(2);
  }

  @Test
  void aTypedInputAndStateAreReadByTheCodec() {
    MonitorType<Long> countdown = MonitorType.of("countdown", Long.class);
    kit.start(
        kit.builder()
            .codec(new NumberCodec())
            .on(
                countdown,
                call -> {
                  long left = call.state(Long.class).orElse(call.input());
                  return left == 0
                      ? MonitorResult.done(call.iteration())
                      : MonitorResult.again(AT_ONCE).withState(left - 1);
                }));

    control.codec(new NumberCodec()).start(countdown, "c", 2L);

    MonitorInstance ended = kit.awaitStatus("c", MonitorStatus.COMPLETED);
    assertThat(ended.output()).contains(Json.of("3"));
    assertThat(ended.state()).contains(Json.of("0"));
  }

  @Test
  void anInputThatIsNotOfTheTypeIsRefusedOrFailsWithoutRetries() {
    MonitorType<Long> countdown = MonitorType.of("countdown", Long.class);
    MonitorStart wrong = MonitorStart.ofJson(countdown, Json.of("\"two\"")).id("c");
    assertThatThrownBy(() -> control.codec(new NumberCodec()).start(wrong))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("is not of the type")
        .hasMessageContaining("countdown");
    assertThat(control.get("c")).isEmpty();

    control.start(wrong);
    kit.start(kit.builder().codec(new NumberCodec()).on(countdown, call -> MonitorResult.done()));

    MonitorInstance failed = kit.awaitStatus("c", MonitorStatus.FAILED);
    assertThat(failed.failure().orElseThrow().attempts()).isEqualTo(1);
    assertThat(failed.failure().orElseThrow().message()).isEqualTo("it is no number");
  }

  @Test
  void aWakeAtTheExpiryDoesNoCheckAndDoesNotOvershoot() {
    AtomicInteger checks = new AtomicInteger();
    MonitorType<Json> brief = WATCH.expiresAfter(Duration.ofMillis(1_500));
    kit.start(
        brief,
        call -> {
          checks.incrementAndGet();
          return MonitorResult.again();
        });
    control.start(brief, "brief", Json.NULL);

    MonitorInstance ended = kit.awaitStatus("brief", MonitorStatus.COMPLETED);

    assertThat(ended.outcome()).contains(MonitorOutcome.EXPIRED);
    assertThat(checks).hasValue(1);
    assertThat(ended.iterations()).isEqualTo(1);
    assertThat(Duration.between(ended.expiresAt().orElseThrow(), ended.endedAt().orElseThrow()))
        .isBetween(Duration.ZERO, Duration.ofSeconds(1));
    assertThat(kit.wakes()).isZero();
  }

  /** Its lease lasts much longer. */
  @Test
  void whatExpiresBesideANodeThatWasKilledDoesNotOvershootEither() {
    MonitorType<Json> brief = WATCH.expiresAfter(Duration.ofSeconds(4));
    control.start(MonitorStart.of(brief, Json.NULL).id("brief").firstCheckIn(LONG));
    database.update(
        "update outbox set lease_token = 1, lease_until = now() + interval '1 hour',"
            + " leased_by = 'killed', available_at = now()");
    Set<String> told = ConcurrentHashMap.newKeySet();
    kit.start(
        kit.builder()
            .events(
                new MonitorEvents() {
                  @Override
                  public void ended(
                      String application,
                      String type,
                      String id,
                      MonitorStatus status,
                      @Nullable MonitorOutcome outcome) {
                    told.add(id + " " + status + " " + outcome);
                  }
                })
            .on(brief, call -> MonitorResult.again()));

    MonitorInstance ended = kit.awaitStatus("brief", MonitorStatus.COMPLETED);

    assertThat(ended.outcome()).contains(MonitorOutcome.EXPIRED);
    assertThat(Duration.between(ended.expiresAt().orElseThrow(), ended.endedAt().orElseThrow()))
        .isBetween(Duration.ZERO, Duration.ofSeconds(10)); // and not until the lease is over
    assertThat(kit.history("brief")).containsExactly(STARTED, COMPLETED);
    await().atMost(SOON).until(() -> told.equals(Set.of("brief COMPLETED EXPIRED")));
  }

  @Test
  void aCheckThatRunsWhenTheTimeIsOverGoesOnAndCounts() {
    MonitorType<Json> brief = WATCH.expiresAfter(Duration.ofSeconds(3));
    kit.start(
        brief,
        call -> {
          await()
              .atMost(SOON)
              .until(() -> Instant.now().isAfter(call.expiresAt().orElseThrow().plusSeconds(2)));
          return switch (call.id()) {
            case "met" -> MonitorResult.done(Json.of("1"));
            case "again" -> MonitorResult.again().withState(Json.of("2"));
            default -> throw new IllegalStateException("no answer");
          };
        });
    control.start(brief, "met", Json.NULL);
    control.start(brief, "again", Json.NULL);
    control.start(brief, "fails", Json.NULL);

    MonitorInstance met = kit.awaitStatus("met", MonitorStatus.COMPLETED);
    assertThat(met.outcome()).contains(MonitorOutcome.CONDITION_MET);
    assertThat(met.output()).contains(Json.of("1"));
    MonitorInstance again = kit.awaitStatus("again", MonitorStatus.COMPLETED);
    assertThat(again.outcome()).contains(MonitorOutcome.EXPIRED);
    assertThat(again.iterations()).isEqualTo(1);
    assertThat(again.state()).contains(Json.of("2"));
    MonitorInstance failing = kit.awaitStatus("fails", MonitorStatus.COMPLETED);
    assertThat(failing.outcome()).contains(MonitorOutcome.EXPIRED);
    assertThat(failing.attempts()).isEqualTo(1);
    assertThat(kit.wakes()).as("each ended with its check").isZero();
  }

  @Test
  void whatHasExpiredBeforeItsFirstCheckIsNotChecked() {
    AtomicInteger checks = new AtomicInteger();
    kit.start(
        WATCH,
        call -> {
          checks.incrementAndGet();
          return MonitorResult.again();
        });
    control.start(
        MonitorStart.of(WATCH, Json.NULL)
            .id("late")
            .expiresAt(Instant.parse("2020-01-01T00:00:00Z")));

    MonitorInstance ended = kit.awaitStatus("late", MonitorStatus.COMPLETED);

    assertThat(ended.outcome()).contains(MonitorOutcome.EXPIRED);
    assertThat(ended.startedAt()).isEmpty();
    assertThat(checks).hasValue(0);
  }

  @Test
  void theFirstCheckMayBeDelayedButNotBeyondTheExpiry() {
    control.start(MonitorStart.of(WATCH, Json.NULL).id("delayed").firstCheckIn(LONG));
    control.start(
        MonitorStart.of(WATCH, Json.NULL)
            .id("brief")
            .firstCheckIn(LONG)
            .expiresAfter(Duration.ofMinutes(1)));

    MonitorInstance delayed = kit.get("delayed");
    assertThat(delayed.status()).isEqualTo(MonitorStatus.PENDING);
    assertThat(delayed.dueAt()).contains(delayed.createdAt().plus(LONG));
    MonitorInstance brief = kit.get("brief");
    assertThat(brief.dueAt()).isEqualTo(brief.expiresAt());
  }

  @Test
  void endsWithTheLastOfItsIterations() {
    MonitorType<Json> twice = WATCH.maxIterations(2).every(Duration.ofMillis(1));
    kit.start(twice, call -> MonitorResult.again().withState(Json.of("" + call.iteration())));
    control.start(twice, "twice", Json.NULL);

    MonitorInstance ended = kit.awaitStatus("twice", MonitorStatus.COMPLETED);

    assertThat(ended.outcome()).contains(MonitorOutcome.MAX_ITERATIONS);
    assertThat(ended.iterations()).isEqualTo(2);
    assertThat(ended.state()).contains(Json.of("2"));
  }

  @Test
  void aCheckMayFailOrCancelItsInstance() {
    kit.start(
        WATCH,
        call ->
            call.id().equals("f")
                ? MonitorResult.fail("the repository is gone").withMessages(alert("gone"))
                : MonitorResult.cancel("nobody reads it"));
    control.start(WATCH, "f", Json.NULL);
    control.start(WATCH, "c", Json.NULL);

    MonitorInstance failed = kit.awaitStatus("f", MonitorStatus.FAILED);
    assertThat(failed.failure().orElseThrow().message()).isEqualTo("the repository is gone");
    assertThat(failed.failure().orElseThrow().type()).isEmpty();
    assertThat(failed.failure().orElseThrow().attempts()).isEqualTo(1);
    assertThat(kit.published("alerts")).containsExactly("gone");
    MonitorInstance canceled = kit.awaitStatus("c", MonitorStatus.CANCELED);
    assertThat(canceled.output()).contains(Json.of("\"nobody reads it\""));
    assertThat(canceled.outcome()).isEmpty();
  }

  @Test
  void aFailingCheckIsRetriedInsideItsIterationAndThenTheInstanceFails() {
    MonitorType<Json> fragile = WATCH.retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(3));
    List<Integer> attempts = new CopyOnWriteArrayList<>();
    kit.start(
        fragile,
        call -> {
          attempts.add(call.attempt());
          throw new IllegalStateException("no answer");
        });
    control.start(fragile, "x", Json.NULL);

    MonitorInstance failed = kit.awaitStatus("x", MonitorStatus.FAILED);

    MonitorFailure failure = failed.failure().orElseThrow();
    assertThat(failure.type()).contains("java.lang.IllegalStateException");
    assertThat(failure.message()).isEqualTo("no answer");
    assertThat(failure.stack().orElseThrow()).contains("MonitorsIT");
    assertThat(failure.attempts()).isEqualTo(3);
    assertThat(attempts).containsExactly(1, 2, 3);
    assertThat(failed.iterations()).isZero();
    assertThat(kit.history("x")).containsExactly(STARTED, ATTEMPT_FAILED, ATTEMPT_FAILED, FAILED);
    assertThat(database.count("outbox_dlq")).isZero();
    assertThat(kit.wakes()).isZero();
  }

  @Test
  void aCheckWhoseExceptionHasNoWordsHasFailedLikeAnyOther() {
    MonitorType<Json> fragile = WATCH.retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(2));
    kit.start(
        fragile,
        call -> {
          throw new Wordless();
        });
    control.start(fragile, "x", Json.NULL);

    MonitorFailure failure = kit.awaitStatus("x", MonitorStatus.FAILED).failure().orElseThrow();

    assertThat(failure.type()).contains(Wordless.class.getName());
    assertThat(failure.message()).isEqualTo(Wordless.class.getName());
    assertThat(failure.attempts()).isEqualTo(2);
    assertThat(kit.history("x")).containsExactly(STARTED, ATTEMPT_FAILED, FAILED);
    assertThat(database.count("outbox_dlq")).isZero();
  }

  /** An exception of a user's that cannot be asked what it is. */
  private static final class Wordless extends RuntimeException {
    private static final long serialVersionUID = 1L;

    @Override
    public String getMessage() {
      throw new IllegalStateException("it has none");
    }
  }

  @Test
  void attemptsEndWhenTheirTotalTimeIsOver() {
    MonitorType<Json> patient =
        WATCH.retry(
            RetryPolicy.constant(Duration.ofMillis(20))
                .attempts(100_000)
                .maxTotalTime(Duration.ofSeconds(2)));
    kit.start(
        patient,
        call -> {
          throw new IllegalStateException("no answer");
        });
    control.start(patient, "x", Json.NULL);

    MonitorInstance failed = kit.awaitStatus("x", MonitorStatus.FAILED);

    assertThat(failed.attempts()).isGreaterThan(1);
    assertThat(Duration.between(failed.createdAt(), failed.endedAt().orElseThrow()))
        .isGreaterThanOrEqualTo(Duration.ofSeconds(2));
  }

  @Test
  void theWaitBetweenAttemptsGrowsByItsFactorUpToTheLongest() {
    MonitorType<Json> patient =
        WATCH.retry(
            RetryPolicy.exponential(Duration.ofHours(1), 2)
                .max(Duration.ofHours(3))
                .jitter(0)
                .attempts(5));
    kit.start(
        patient,
        call -> {
          throw new IllegalStateException("no answer");
        });
    control.start(patient, "x", Json.NULL);

    List<Long> hours = new ArrayList<>();
    for (int attempt = 1; attempt < 5; attempt++) {
      int failed = attempt;
      MonitorInstance waiting = kit.awaitInstance("x", now -> now.attempts() == failed);
      hours.add(
          Duration.between(waiting.updatedAt(), waiting.dueAt().orElseThrow())
              .plusMinutes(30) // to the nearest hour
              .toHours());
      control.wake("x");
    }
    assertThat(hours).containsExactly(1L, 2L, 3L, 3L);
    assertThat(kit.awaitStatus("x", MonitorStatus.FAILED).attempts()).isEqualTo(5);
  }

  @Test
  void whatIsGivenUpAtOnceIsNotRetried() {
    MonitorType<Json> strict =
        WATCH.retry(RetryPolicy.standard().giveUpOn(ArithmeticException.class));
    kit.start(
        strict,
        call -> {
          throw new ArithmeticException("by zero");
        });
    control.start(strict, "x", Json.NULL);

    assertThat(kit.awaitStatus("x", MonitorStatus.FAILED).attempts()).isEqualTo(1);
  }

  @Test
  void aCheckThatSucceedsAgainBeginsItsAttemptsAnew() {
    MonitorType<Json> fragile = WATCH.retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(3));
    AtomicInteger calls = new AtomicInteger();
    kit.start(
        fragile,
        call -> {
          if (calls.incrementAndGet() % 3 != 0) {
            throw new IllegalStateException("no answer");
          }
          return call.iteration() < 2
              ? MonitorResult.again(AT_ONCE)
              : MonitorResult.done().withState(Json.of("" + call.attempt()));
        });
    control.start(fragile, "x", Json.NULL);

    MonitorInstance ended = kit.awaitStatus("x", MonitorStatus.COMPLETED);

    assertThat(calls).hasValue(6);
    assertThat(ended.state()).contains(Json.of("3"));
    assertThat(ended.attempts()).isZero();
    assertThat(ended.lastError()).isEmpty();
  }

  @Test
  void noAttemptIsMadeBeyondTheExpiry() {
    MonitorType<Json> fragile =
        WATCH.retry(RetryPolicy.constant(LONG)).expiresAfter(Duration.ofMillis(1_500));
    kit.start(
        fragile,
        call -> {
          throw new IllegalStateException("no answer");
        });
    control.start(fragile, "x", Json.NULL);
    MonitorInstance waiting = kit.awaitInstance("x", instance -> instance.attempts() == 1);
    assertThat(waiting.lastError()).contains("no answer");
    assertThat(waiting.dueAt()).isEqualTo(waiting.expiresAt());

    assertThat(kit.awaitStatus("x", MonitorStatus.COMPLETED).outcome())
        .contains(MonitorOutcome.EXPIRED);
  }

  @Test
  void aStatusThatIsTooLargeAndAStateThatIsNoJsonLeaveTheInstanceUnharmed() {
    MonitorType<Json> patient = WATCH.retry(RetryPolicy.constant(LONG));
    String large = "\"" + "x".repeat(MonitorInstance.MAX_STATUS_BYTES) + "\"";
    kit.start(
        patient,
        call -> {
          if (call.iteration() == 1) {
            return MonitorResult.again(AT_ONCE).withState(Json.of("1")).withStatus(Json.of("1"));
          }
          return call.id().equals("large")
              ? MonitorResult.again().withState(Json.of("2")).withStatus(Json.of(large))
              : MonitorResult.done(Json.of("2"), alert("x")).withState(Json.of("{"));
        });
    control.start(patient, "large", Json.NULL);
    control.start(patient, "broken", Json.NULL);

    for (String id : List.of("large", "broken")) {
      MonitorInstance waiting = kit.awaitInstance(id, instance -> instance.attempts() == 1);
      assertThat(waiting.status()).isEqualTo(MonitorStatus.RUNNING);
      assertThat(waiting.state()).contains(Json.of("1"));
      assertThat(waiting.customStatus()).contains(Json.of("1"));
      assertThat(waiting.iterations()).isEqualTo(1);
      assertThat(waiting.output()).isEmpty();
    }
    assertThat(kit.get("large").lastError().orElseThrow())
        .contains("the custom status has 16386 bytes; it may have 16384");
    assertThat(kit.published("alerts")).isEmpty();
  }

  @Test
  void aCheckThatReturnsNullHasFailed() {
    MonitorType<Json> strict = WATCH.retry(RetryPolicy.none());
    @SuppressWarnings("NullAway") // on purpose
    MonitorCheck<Json> nothing = call -> null;
    kit.start(strict, nothing);
    control.start(strict, "x", Json.NULL);
    assertThat(kit.awaitStatus("x", MonitorStatus.FAILED).failure().orElseThrow().message())
        .contains("the check returned null");
  }

  @Test
  void anEventWakesAnInstanceThatWaitsForItAndIsSeenOnce() {
    List<String> seen = new CopyOnWriteArrayList<>();
    kit.start(
        WATCH,
        call -> {
          call.events().forEach(event -> seen.add(event.name() + event.payload().text()));
          return call.events("approved").isEmpty()
              ? MonitorResult.again().orOn("approved", "rejected")
              : MonitorResult.done();
        });
    control.start(WATCH, "order", Json.NULL);
    kit.awaitInstance("order", instance -> instance.waitsFor().contains("approved"));

    assertThat(control.raiseEvent("order", "noted", Json.of("1"))).isEqualTo(MonitorAnswer.DONE);
    assertThat(kit.get("order").dueAt().orElseThrow())
        .as("nobody waits for it")
        .isAfter(kit.get("order").updatedAt().plusSeconds(60));
    assertThat(control.raiseEvent("order", "rejected", Json.of("2"))).isEqualTo(MonitorAnswer.DONE);
    kit.awaitInstance("order", instance -> instance.iterations() == 2);
    assertThat(control.raiseEvent("order", "approved", Json.of("3"))).isEqualTo(MonitorAnswer.DONE);

    kit.awaitStatus("order", MonitorStatus.COMPLETED);
    assertThat(seen).containsExactly("noted1", "rejected2", "approved3");
    assertThat(database.count("outbox_monitor_event where unseen")).isZero();
  }

  @Test
  void anEventThatIsRaisedWhileACheckRunsIsNotLost() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    kit.start(
        WATCH,
        call -> {
          if (call.iteration() == 1) {
            running.countDown();
            go.await();
            return MonitorResult.again(LONG).orOn("approved");
          }
          return MonitorResult.done(call.events("approved").get(0).payload());
        });
    control.start(WATCH, "order", Json.NULL);
    running.await();
    control.raiseEvent("order", "approved", Json.of("\"by ada\""));
    go.countDown();

    assertThat(kit.awaitStatus("order", MonitorStatus.COMPLETED).output())
        .contains(Json.of("\"by ada\""));
  }

  @Test
  void anEventOutlivesTheNodeAndAnAttemptThatFails() {
    control.start(MonitorStart.of(WATCH, Json.NULL).id("order").firstCheckIn(LONG));
    control.raiseEvent("order", "approved", Json.of("1"));
    MonitorType<Json> fragile = WATCH.retry(RetryPolicy.constant(Duration.ofMillis(1)));
    kit.start(
        fragile,
        call -> {
          if (call.attempt() == 1) {
            throw new IllegalStateException("no answer");
          }
          return MonitorResult.done(Json.of("" + call.events().size()));
        });
    control.wake("order");

    assertThat(kit.awaitStatus("order", MonitorStatus.COMPLETED).output()).contains(Json.of("1"));
  }

  @Test
  void noMoreEventsWaitThanMay() {
    control.start(MonitorStart.of(WATCH, Json.NULL).id("order").firstCheckIn(LONG));
    IntStream.range(0, MonitorControl.MAX_UNSEEN_EVENTS)
        .forEach(
            number ->
                assertThat(control.raiseEvent("order", "e", Json.of("" + number)))
                    .isEqualTo(MonitorAnswer.DONE));

    assertThat(control.raiseEvent("order", "e", Json.NULL)).isEqualTo(MonitorAnswer.FULL);

    AtomicReference<List<RaisedEvent>> given = new AtomicReference<>(List.of());
    kit.start(
        WATCH,
        call -> {
          given.set(call.events());
          return MonitorResult.again();
        });
    control.wake("order");
    kit.awaitInstance("order", instance -> instance.iterations() == 1);
    assertThat(given.get())
        .hasSize(100)
        .extracting(event -> event.payload().text())
        .startsWith("0", "1", "2");
    assertThat(control.raiseEvent("order", "e", Json.NULL)).isEqualTo(MonitorAnswer.DONE);
  }

  @Test
  void theResultOfACheckWhoseInstanceWasTerminatedIsDropped() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    List<MonitorEvents.Dropped> dropped = new CopyOnWriteArrayList<>();
    kit.start(
        kit.builder()
            .events(
                new MonitorEvents() {
                  @Override
                  public void dropped(String application, String type, String id, Dropped why) {
                    dropped.add(why);
                  }
                })
            .on(
                WATCH,
                call -> {
                  running.countDown();
                  go.await();
                  return MonitorResult.done(Json.of("1"), alert("too late"));
                }));
    control.start(WATCH, "x", Json.NULL);
    running.await();

    assertThat(control.terminate("x", "not needed")).isEqualTo(MonitorAnswer.DONE);
    go.countDown();

    await().atMost(SOON).until(() -> dropped.contains(MonitorEvents.Dropped.LATE_RESULT));
    MonitorInstance terminated = kit.get("x");
    assertThat(terminated.status()).isEqualTo(MonitorStatus.TERMINATED);
    assertThat(terminated.output()).contains(Json.of("\"not needed\""));
    assertThat(kit.published("alerts")).isEmpty();
    assertThat(kit.wakes()).isZero();
  }

  @Test
  void theResultOfACheckWhoseInstanceWasSuspendedIsKept() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    kit.start(
        WATCH,
        call -> {
          running.countDown();
          go.await();
          return MonitorResult.again(AT_ONCE).withState(Json.of("" + call.iteration()));
        });
    control.start(WATCH, "x", Json.NULL);
    running.await();
    control.suspend("x", "holiday");
    go.countDown();

    await().atMost(SOON).until(() -> kit.wakes() == 0);
    MonitorInstance suspended = kit.get("x");
    assertThat(suspended.status()).isEqualTo(MonitorStatus.SUSPENDED);
    assertThat(suspended.iterations()).isEqualTo(1);
    assertThat(suspended.state()).contains(Json.of("1"));

    assertThat(control.resume("x", "back")).isEqualTo(MonitorAnswer.DONE);
    kit.awaitInstance("x", instance -> instance.iterations() > 1);
  }

  @Test
  void whatExpiresWhileItIsSuspendedIsCompletedWhenItIsResumed() {
    MonitorType<Json> brief = WATCH.expiresAfter(Duration.ofMillis(500));
    kit.start(brief, call -> MonitorResult.again());
    control.start(MonitorStart.of(brief, Json.NULL).id("x").firstCheckIn(LONG));
    control.suspend("x", "holiday");
    await().atMost(SOON).until(() -> kit.wakes() == 0);
    assertThat(kit.get("x").status()).isEqualTo(MonitorStatus.SUSPENDED);

    control.resume("x", "back");

    assertThat(kit.awaitStatus("x", MonitorStatus.COMPLETED).outcome())
        .contains(MonitorOutcome.EXPIRED);
  }

  @Test
  void aRestartBeginsAnewWithTheInputAndTheTimeItHad() {
    MonitorType<Json> timed = WATCH.expiresAfter(Duration.ofDays(1));
    kit.start(
        timed,
        call ->
            call.execution() % 2 == 0 || call.iteration() > 1
                ? MonitorResult.done(call.input())
                : MonitorResult.again(AT_ONCE).withState(Json.of("1")));
    StartedMonitor first = control.start(timed, "x", Json.of("7"));
    MonitorInstance before = kit.awaitStatus("x", MonitorStatus.COMPLETED);

    assertThat(control.restart("x", "once more")).isEqualTo(MonitorAnswer.DONE);

    MonitorInstance after =
        kit.awaitInstance(
            "x", now -> now.execution() > first.execution() && now.status().isFinished());
    assertThat(after.output()).contains(Json.of("7"));
    assertThat(after.createdAt()).isAfter(before.endedAt().orElseThrow());
    assertThat(Duration.between(after.createdAt(), after.expiresAt().orElseThrow()))
        .isEqualTo(Duration.ofDays(1));
  }

  @Test
  void whoAsksForAWakeWhileACheckRunsGetsAnotherCheck() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    kit.start(
        WATCH,
        call -> {
          running.countDown();
          go.await();
          return MonitorResult.again();
        });
    control.start(WATCH, "x", Json.NULL);
    running.await();

    assertThat(control.wake("x")).isEqualTo(MonitorAnswer.DONE);
    go.countDown();

    kit.awaitInstance("x", instance -> instance.iterations() == 2);
    MonitorInstance waiting = kit.get("x");
    assertThat(waiting.dueAt().orElseThrow()).isAfter(waiting.updatedAt().plusSeconds(60));
  }

  @Test
  void manyNodesCommitEachIterationOnce() {
    int instances = 20;
    int iterations = 10;
    for (int node = 0; node < 3; node++) {
      kit.start(
          WATCH,
          call -> {
            String told = call.id() + " " + call.iteration();
            return call.iteration() < iterations
                ? MonitorResult.again(Duration.ofMillis(5)).withMessages(alert(told))
                : MonitorResult.done(call.input(), alert(told));
          });
    }
    IntStream.range(0, instances).forEach(n -> control.start(WATCH, "i" + n, Json.NULL));

    await()
        .atMost(SOON)
        .until(() -> control.counts().get(MonitorStatus.COMPLETED) == (long) instances);
    List<String> told = kit.published("alerts");
    assertThat(told).hasSize(instances * iterations).doesNotHaveDuplicates();
  }

  @Test
  void anUnknownTypeIsLeftToNodesThatHaveIt() {
    MonitorType<Json> other = MonitorType.of("other");
    kit.start(WATCH, call -> MonitorResult.done());
    control.start(other, "o", Json.NULL);
    control.start(WATCH, "w", Json.NULL);
    kit.awaitStatus("w", MonitorStatus.COMPLETED);
    assertThat(kit.get("o").status()).isEqualTo(MonitorStatus.PENDING);

    kit.start(other, call -> MonitorResult.done());

    kit.awaitStatus("o", MonitorStatus.COMPLETED);
  }

  @Test
  void applicationsWithOneQueueHaveNothingToDoWithEachOther() {
    MonitorControl bank = MonitorControl.of(kit.outbox(), "bank").queue("watches");
    MonitorControl shop = control.queue("watches");
    bank.start(WATCH, "same", Json.of("\"bank\""));
    shop.start(WATCH, "same", Json.of("\"shop\""));
    Set<String> checked = ConcurrentHashMap.newKeySet();
    kit.start(
        kit.builder()
            .queue("watches")
            .on(
                WATCH,
                call -> {
                  checked.add(call.input().text());
                  return MonitorResult.done();
                }));

    await()
        .atMost(SOON)
        .until(() -> shop.get("same").orElseThrow().status() == MonitorStatus.COMPLETED);
    assertThat(bank.get("same").orElseThrow().status()).isEqualTo(MonitorStatus.PENDING);
    assertThat(checked).containsExactly("\"shop\"");
  }

  @Test
  void whatKillsItsProcessEachTimeFailsWhenItsMessageBecomesADeadLetter() {
    control.start(WATCH, "poison", Json.NULL);
    database.update("update outbox set deliveries_count = 1000");
    kit.start(WATCH, call -> MonitorResult.done());

    MonitorInstance failed = kit.awaitStatus("poison", MonitorStatus.FAILED);

    assertThat(failed.failure().orElseThrow().message())
        .contains("its message became a dead letter, max_deliveries");
    assertThat(failed.endedAt()).isPresent();
    assertThat(database.count("outbox_dlq")).isEqualTo(1);
    assertThat(kit.history("poison")).containsExactly(STARTED, FAILED);
  }

  @Test
  void aLockedInstanceKeepsNoOtherFromFailingWithItsDeadLetter() throws Exception {
    IntStream.range(0, 6).forEach(n -> control.start(WATCH, "poison" + n, Json.NULL));
    database.update("update outbox set deliveries_count = 1000");
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select 1 from outbox_monitor where id = 'poison2' for update");
      kit.start(WATCH, call -> MonitorResult.done());
      await().atMost(SOON).until(() -> control.counts().get(MonitorStatus.FAILED) == 5L);
      assertThat(database.count("outbox_dlq")).isEqualTo(5);
      stranger.rollback();
    }
    kit.awaitStatus("poison2", MonitorStatus.FAILED);
    assertThat(database.count("outbox_dlq")).isEqualTo(6);
    assertThat(kit.wakes()).isZero();
  }

  @Test
  void aCheckThatTakesTooLongIsTriedAgainAndThenFails() {
    MonitorType<Json> slow = WATCH.retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(2));
    CountDownLatch never = new CountDownLatch(1);
    kit.start(
        kit.builder()
            .subscriber(settings -> settings.handlerTimeout(Duration.ofMillis(100)))
            .on(
                slow,
                call -> {
                  never.await();
                  return MonitorResult.done();
                }));
    control.start(slow, "slow", Json.NULL);

    MonitorInstance failed = kit.awaitStatus("slow", MonitorStatus.FAILED);
    assertThat(failed.attempts()).isEqualTo(2);
  }

  @Test
  void anInstanceThatIsStartedInATransactionIsThereOnceThatCommits() throws Exception {
    kit.start(WATCH, call -> MonitorResult.done());
    try (Connection connection = database.plain().getConnection()) {
      MonitorStart start = MonitorStart.of(WATCH, Json.NULL).id("t");
      assertThatThrownBy(() -> control.start(connection, start))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("autocommit");
      connection.setAutoCommit(false);
      assertThat(control.start(connection, start).started()).isTrue();
      connection.rollback();
      assertThat(control.get("t")).isEmpty();
      assertThat(kit.wakes()).isZero();

      assertThat(control.start(connection, start).started()).isTrue();
      assertThat(control.get("t")).isEmpty();
      connection.commit();
    }
    kit.awaitStatus("t", MonitorStatus.COMPLETED);
  }

  @Test
  void hundredsOfIterationsOfAnInstanceLeaveBoundedHistory() {
    leavesBoundedHistory(300, SOON);
  }

  @Test
  @Tag("large")
  void tenThousandIterationsOfAnInstanceLeaveBoundedHistory() {
    leavesBoundedHistory(10_000, Duration.ofMinutes(10));
  }

  private void leavesBoundedHistory(int iterations, Duration within) {
    MonitorType<Json> fast = WATCH.history(20).maxIterations(iterations);
    kit.start(
        fast,
        call ->
            MonitorResult.again(AT_ONCE)
                .withState(Json.of(Long.toString(call.iteration())))
                .withStatus(Json.of(Long.toString(call.iteration()))));
    control.start(fast, "x", Json.NULL);

    await().atMost(within).until(() -> kit.get("x").status() == MonitorStatus.COMPLETED);

    assertThat(kit.get("x").iterations()).isEqualTo(iterations);
    assertThat(database.count("outbox_monitor_event")).isBetween(20L, 20L + 17);
    assertThat(database.one(Integer.class, "select pg_column_size(m.*) from outbox_monitor m"))
        .as("bytes of its row")
        .isLessThan(500);
    assertThat(kit.wakes()).isZero();
  }

  @Test
  void aTypeWithoutHistoryWritesNone() {
    MonitorType<Json> quiet = WATCH.history(0);
    kit.start(
        quiet,
        call -> call.events().isEmpty() ? MonitorResult.again().orOn("e") : MonitorResult.done());
    control.start(quiet, "x", Json.NULL);
    kit.awaitInstance("x", instance -> instance.iterations() == 1);
    control.raiseEvent("x", "e", Json.NULL);
    kit.awaitStatus("x", MonitorStatus.COMPLETED);

    assertThat(database.count("outbox_monitor_event")).isZero();
  }

  @Test
  void aLockedInstanceStopsNoOther() throws Exception {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    kit.start(
        WATCH,
        call -> {
          if (call.id().equals("held")) {
            running.countDown();
            go.await();
          }
          return MonitorResult.done(Json.of("1"), alert(call.id()));
        });
    control.start(WATCH, "held", Json.NULL);
    running.await();
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select 1 from outbox_monitor where id = 'held' for update");
      go.countDown();
      IntStream.range(0, 5).forEach(n -> control.start(WATCH, "free" + n, Json.NULL));
      await().atMost(SOON).until(() -> control.counts().get(MonitorStatus.COMPLETED) == 5L);
      stranger.rollback();
    }
    kit.awaitStatus("held", MonitorStatus.COMPLETED);
    assertThat(kit.published("alerts")).hasSize(6).doesNotHaveDuplicates();
  }

  @Test
  void runsWhereTransactionsAreRepeatableReadByDefault() {
    PGSimpleDataSource strict = database.plain();
    strict.setOptions("-c default_transaction_isolation=repeatable\\ read");
    MonitorKit of = new MonitorKit(database, strict);
    try (of) {
      of.start(
          WATCH,
          call ->
              call.events().isEmpty()
                  ? MonitorResult.again().orOn("e")
                  : MonitorResult.done(Json.of("1"), alert("x")));
      of.control().start(WATCH, "x", Json.NULL);
      of.awaitInstance("x", instance -> instance.iterations() == 1);
      of.control().raiseEvent("x", "e", Json.NULL);
      of.awaitStatus("x", MonitorStatus.COMPLETED);
    }
    assertThat(kit.published("alerts")).containsExactly("x");
  }

  @Test
  void anIterationIsTwoExecutionsThatCommitByThemselvesBesideItsClaim() {
    CountingDataSource counting = new CountingDataSource(database.pool(10));
    MonitorKit of = new MonitorKit(database, counting);
    int most = 20;
    try (of) {
      of.start(
          WATCH,
          call ->
              call.iteration() < most
                  ? MonitorResult.again(Duration.ofMillis(20))
                  : MonitorResult.done());
      of.control().start(WATCH, "x", Json.NULL);
      of.awaitStatus("x", MonitorStatus.COMPLETED);
    }
    assertThat(counting.executionsOf("cardinality(m.unseen), m.history"))
        .as("reads")
        .isEqualTo(most);
    assertThat(counting.executionsOf("with held as materialized"))
        .as("commits, with the wakes that follow")
        .isEqualTo(most - 1);
    assertThat(counting.executionsOf("set iteration = m.iteration + 1"))
        .as("none by itself")
        .isEqualTo(most - 1);
    assertThat(counting.executionsOf("available_at = clock_timestamp() +")).isZero();
    assertThat(counting.executionsOf("offset (")).isZero();
  }

  @Test
  void manyLockedInstancesTakeNeitherTheTimeOfTheWorkersNorChecksInVain() throws Exception {
    int locked = 40;
    AtomicInteger inVain = new AtomicInteger();
    Set<Long> checks = ConcurrentHashMap.newKeySet();
    for (int n = 0; n < locked; n++) {
      control.start(WATCH, "locked" + n, Json.NULL);
    }
    control.start(WATCH, "free", Json.NULL);
    database.update("update outbox_monitor set status = 'running', started_at = now()");
    try (Connection stranger = database.plain().getConnection()) {
      stranger.setAutoCommit(false);
      stranger
          .createStatement()
          .execute("select 1 from outbox_monitor where id like 'locked%' for update");
      kit.start(
          kit.builder()
              .subscriber(settings -> settings.workers(4))
              .on(
                  WATCH,
                  call -> {
                    if (call.id().equals("free")) {
                      checks.add(call.iteration());
                      return MonitorResult.again(Duration.ofMillis(200));
                    }
                    inVain.incrementAndGet();
                    return MonitorResult.again();
                  }));
      await().atMost(SOON).until(() -> checks.size() >= 60);
      assertThat(inVain.get()).as("each is found locked once").isLessThanOrEqualTo(locked);
      stranger.rollback();
    }
    await()
        .atMost(SOON)
        .until(() -> database.count("outbox_monitor where iteration > 0") == locked + 1);
  }

  /** Of state, status and output the server says what it takes. */
  @Test
  void aStateThatIsTooDeepForTheServerIsAFailedCheck() {
    String deep = "[".repeat(100_000) + "]".repeat(100_000);
    AtomicInteger calls = new AtomicInteger();
    kit.start(
        WATCH.retry(RetryPolicy.none()),
        call -> {
          calls.incrementAndGet();
          return MonitorResult.again().withState(Json.of(deep));
        });
    control.start(WATCH, "x", Json.NULL);

    assertThat(kit.awaitStatus("x", MonitorStatus.FAILED).failure().orElseThrow().message())
        .contains("54001");
    assertThat(calls).hasValue(1);
  }

  @Test
  void whatTakesTheServerTooLongIsAFailedCheck() {
    database.update(
        "create or replace function slow() returns trigger language plpgsql as"
            + " $$ begin perform pg_sleep(11); return new; end $$");
    database.update(
        "create trigger slow before insert on outbox for each row when (new.queue = 'alerts')"
            + " execute function slow()");
    try {
      MonitorType<Json> once = WATCH.retry(RetryPolicy.none());
      kit.start(once, call -> MonitorResult.done(Json.NULL, alert("slow")));
      control.start(once, "x", Json.NULL);
      assertThat(kit.awaitStatus("x", MonitorStatus.FAILED).failure().orElseThrow().message())
          .contains("57014");
    } finally {
      kit.close();
      database.update("drop trigger slow on outbox");
    }
  }

  @Test
  void whoTellsSomethingWhileAnAttemptFailsIsHeardByTheNextOneAtOnce() throws Exception {
    MonitorType<Json> slow = WATCH.retry(RetryPolicy.constant(LONG).attempts(5));
    CountDownLatch running = new CountDownLatch(2);
    CountDownLatch go = new CountDownLatch(1);
    kit.start(
        slow,
        call -> {
          if (call.iteration() == 1) {
            return MonitorResult.again().orOn("signed");
          }
          if (call.attempt() == 1) {
            running.countDown();
            go.await();
            throw new IllegalStateException("it could not look");
          }
          return MonitorResult.done();
        });
    for (String id : List.of("raised", "woken")) {
      control.start(slow, id, Json.NULL);
      kit.awaitInstance(id, instance -> instance.iterations() == 1);
      control.wake(id);
    }
    running.await();
    control.raiseEvent("raised", "signed", Json.NULL);
    control.wake("woken");
    go.countDown();

    for (String id : List.of("raised", "woken")) {
      MonitorInstance failed =
          kit.awaitInstance(
              id, instance -> instance.attempts() == 1 || instance.status().isFinished());
      assertThat(failed.dueAt().orElse(Instant.now())).isBefore(Instant.now().plusSeconds(60));
      kit.awaitStatus(id, MonitorStatus.COMPLETED);
    }
  }

  @Test
  void anEventThatAFailedAttemptWasGivenBringsTheNextOneNotForward() {
    MonitorType<Json> slow = WATCH.retry(RetryPolicy.constant(LONG).attempts(5));
    kit.start(
        slow,
        call -> {
          if (call.iteration() == 1) {
            return MonitorResult.again().orOn("signed");
          }
          throw new IllegalStateException("it could not look");
        });
    control.start(slow, "x", Json.NULL);
    kit.awaitInstance("x", instance -> instance.iterations() == 1);
    control.raiseEvent("x", "signed", Json.NULL);

    assertThat(kit.awaitInstance("x", instance -> instance.attempts() == 1).dueAt().orElseThrow())
        .isAfter(Instant.now().plusSeconds(60));
  }

  @Test
  void aHistoryIsBoundedAlsoWhereAttemptsFail() {
    MonitorType<Json> often =
        WATCH.retry(RetryPolicy.constant(Duration.ofMillis(1)).attempts(3)).history(10);
    AtomicReference<Long> most = new AtomicReference<>(0L);
    kit.start(
        often,
        call -> {
          most.accumulateAndGet(database.count("outbox_monitor_event"), Math::max);
          if (call.attempt() == 1) {
            throw new IllegalStateException("it could not look");
          }
          return call.iteration() == 40 ? MonitorResult.done() : MonitorResult.again(AT_ONCE);
        });
    control.start(often, "x", Json.NULL);
    kit.awaitStatus("x", MonitorStatus.COMPLETED);

    assertThat(most.get()).isBetween(10L, 26L);
  }

  @Test
  void instancesThatWaitCostNoThreadNoConnectionAndNoStatement() {
    Cost none = costBeside(0, "x");
    Cost many = costBeside(10_000, "y");

    assertThat(many.threads()).isNotEmpty().isEqualTo(none.threads());
    assertThat(many.connections()).isPositive().isEqualTo(none.connections());
    for (Cost cost : List.of(none, many)) {
      assertThat(cost.statements())
          .as("read, start and end of one, and a trim")
          .isLessThanOrEqualTo(4);
    }
  }

  /**
   * What a node has, and what one check costs it.
   *
   * @param threads the names of its threads, without their numbers
   * @param connections how many there are to the server
   * @param statements how many were executed on instances
   */
  private record Cost(List<String> threads, long connections, long statements) {}

  /** The cost of a check, beside instances that have been checked and wait. */
  private Cost costBeside(int waiting, String id) {
    PGSimpleDataSource named = database.plain();
    named.setApplicationName("node beside " + waiting);
    HikariConfig config = new HikariConfig();
    config.setDataSource(named);
    config.setMaximumPoolSize(10); // all of which are made
    givenWaiting(waiting);
    try (HikariDataSource pool = new HikariDataSource(config)) {
      CountingDataSource counting = new CountingDataSource(pool);
      try (MonitorKit of = new MonitorKit(database, counting)) {
        Monitors monitors =
            of.start(
                of.builder()
                    .listen(PgjdbcListen.on(named))
                    .on(WATCH, call -> MonitorResult.done()));
        await().atMost(SOON).until(() -> monitors.health().lastLook().isPresent());
        await().atMost(SOON).until(() -> monitors.health().healthy());
        await().atMost(SOON).until(() -> pool.getHikariPoolMXBean().getTotalConnections() == 10);
        long before = ofInstances(counting);
        control.start(WATCH, id, Json.NULL);
        kit.awaitStatus(id, MonitorStatus.COMPLETED);
        assertThat(database.count("outbox_monitor where ended_at is null")).isEqualTo(waiting);
        return new Cost(
            threads(),
            database.count(
                "pg_stat_activity where application_name = '" + named.getApplicationName() + "'"),
            ofInstances(counting) - before);
      }
    }
  }

  private void givenWaiting(int instances) {
    database.update(
        """
        with messages as (
          insert into outbox (queue, type, payload, headers, available_at)
          select 'monitors.shop', 'watch', '',
            jsonb_build_object('monitor-id', 'i' || n, 'monitor-application', 'shop'),
            now() + interval '1 hour'
          from generate_series(1, ?) n
          returning id, headers, available_at)
        insert into outbox_monitor (application, id, type, status, iteration, input, message_id,
          started_at, expires_at, due_at)
        select 'shop', m.headers ->> 'monitor-id', 'watch', 'running', 1, 'null', m.id, now(),
          now() + interval '1 day', m.available_at
        from messages m""",
        instances);
  }

  private static List<String> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.contains("monitors.shop"))
        .map(name -> name.replaceAll("\\d+", "n"))
        .sorted()
        .toList();
  }

  /** But for the look at what expires next, which is one for all. */
  private static long ofInstances(CountingDataSource counting) {
    return counting.executionsOf("outbox_monitor")
        - counting.executionsOf("m.expires_at < now() +");
  }

  @Test
  void noConnectionIsHeldWhileACheckRuns() throws Exception {
    CountDownLatch running = new CountDownLatch(4);
    CountDownLatch go = new CountDownLatch(1);
    PostgresOutbox narrow = PostgresOutbox.on(database.pool(3), database.table());
    try (Monitors monitors =
        Monitors.builder(narrow, MonitorKit.APPLICATION)
            .on(
                WATCH,
                call -> {
                  running.countDown();
                  go.await();
                  return MonitorResult.done();
                })
            .build()) {
      IntStream.range(0, 4).forEach(n -> control.start(WATCH, "i" + n, Json.NULL));
      monitors.start();
      running.await();
      assertThat(
              database.count(
                  "pg_stat_activity where datname = current_database()"
                      + " and state like 'idle in transaction%'"))
          .isZero();
      go.countDown();
      await().atMost(SOON).until(() -> control.counts().get(MonitorStatus.COMPLETED) == 4L);
    }
  }

  @Test
  void awaitReturnsTheInstanceWhenItHasEndedOrTheTimeIsOver() throws Exception {
    control.start(WATCH, "x", Json.NULL);
    assertThat(control.await("x", Duration.ofMillis(50), Duration.ofMillis(10)))
        .get()
        .extracting(MonitorInstance::status)
        .isEqualTo(MonitorStatus.PENDING);
    assertThat(control.await("nobody", SOON)).isEmpty();
    kit.start(WATCH, call -> MonitorResult.done());
    assertThat(control.await("x", SOON, Duration.ofMillis(10)))
        .get()
        .extracting(MonitorInstance::status)
        .isEqualTo(MonitorStatus.COMPLETED);
  }

  @Test
  void healthCountsInstancesAndNamesThoseThatHaveFailed() {
    MonitorType<Json> strict = WATCH.retry(RetryPolicy.none());
    control.start(MonitorStart.of(WATCH, Json.NULL).id("waits").firstCheckIn(LONG));
    database.update(
        "insert into outbox_monitor (application, id, type, status, input, ended_at)"
            + " values ('shop', 'broken', 'watch', 'failed', 'null', now())");
    Monitors monitors = kit.start(strict, call -> MonitorResult.done());

    await().atMost(SOON).until(() -> monitors.health().lastLook().isPresent());
    MonitorsHealth health = monitors.health();
    assertThat(health.counts())
        .containsEntry(MonitorStatus.PENDING, 1L)
        .containsEntry(MonitorStatus.FAILED, 1L)
        .containsEntry(MonitorStatus.RUNNING, 0L);
    assertThat(health.alerts())
        .singleElement()
        .satisfies(
            alert -> {
              assertThat(alert.rule()).isEqualTo(MonitorAlert.Rule.FAILED);
              assertThat(alert.id()).isEqualTo("broken");
            });
    await().atMost(SOON).until(() -> monitors.health().healthy());
    assertThat(control.alerts()).hasSize(1);
  }
}
