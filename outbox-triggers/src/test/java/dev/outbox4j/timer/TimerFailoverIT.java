package dev.outbox4j.timer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.RetryPolicy;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.migrations.TimerMigrations;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.ds.PGSimpleDataSource;

/** What becomes of a run whose node is gone, or comes back too late. */
@ExtendWith(PostgresExtension.class)
class TimerFailoverIT {
  private static final Timer DAILY = HangingNode.DAILY;
  private static final Duration LONGEST_POLL = Duration.ofSeconds(10);

  private final TestDatabase database;
  private final List<Timers> nodes = new ArrayList<>();

  TimerFailoverIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void setUp() {
    database.migrate(TimerMigrations.of("public", "outbox"), TimerMigrations::migrate);
    database.update("truncate outbox, outbox_dlq, outbox_timer, outbox_timer_run");
    database.update("create table if not exists effects (n int)");
    database.update("truncate effects");
  }

  @AfterEach
  void stop() {
    nodes.forEach(Timers::stop);
  }

  private Timers.Builder builder() {
    return Timers.builder(PostgresOutbox.on(database.pool(10), database.table()), "shop")
        .listen(PgjdbcListen.on(database.plain()));
  }

  private void start(Timers.Builder builder) {
    Timers node = builder.build();
    nodes.add(node);
    node.start();
    await().until(() -> node.health().healthy());
  }

  private void goBy(int days) {
    database.list(
        String.class,
        "with gone as (update outbox_timer set due_at = now(),"
            + " decided_up_to = decided_up_to - make_interval(days => ?) returning 1)"
            + " select pg_notify('outbox_outbox_timer', 'shop')::text from gone",
        days);
  }

  private String run() {
    return database.one(
        String.class,
        "select cause || ' ' || status || ' ' || attempts_count from outbox_timer_run");
  }

  private void awaitRun(String run) {
    await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> database.count("outbox_timer_run") == 1 && run().equals(run));
  }

  /** Else each of them would give the run all its attempts and deliveries anew. */
  @Test
  void whoDoesNotHaveATimerLeavesItsRunsWithTheAttemptsOfThoseThatHaveIt() {
    start(
        builder()
            .on(
                DAILY,
                run -> {
                  throw new IllegalStateException("no");
                })
            .subscriber(
                settings -> settings.retry(RetryPolicy.constant(Duration.ofHours(1)).attempts(3))));
    goBy(1);
    await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> database.count("outbox where attempts_count = 1") == 1);
    stop();
    database.update("update outbox set available_at = now()");
    long token = database.one(Long.class, "select lease_token from outbox");

    start(builder().on(Timer.of("another", DAILY.schedule()), run -> {}));

    await()
        .atMost(Duration.ofSeconds(60))
        .until(() -> database.one(Long.class, "select lease_token from outbox") >= token + 3);
    stop();
    assertThat(
            database.one(
                String.class,
                "select attempts_count || ' ' || deliveries_count || ' ' || last_error from outbox"))
        .startsWith("1 1 left to other subscribers since ");
  }

  /** With a lease of 30 s, as it is said of it; so it takes as long. */
  @Test
  @Tag("large")
  void theRunOfANodeThatIsKilledComesAgainWithinItsLeaseAndAPoll() throws Exception {
    PGSimpleDataSource source = database.plain();
    Process node =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                HangingNode.class.getName(),
                source.getURL(),
                source.getUser(),
                String.valueOf(source.getPassword()))
            .redirectOutput(Redirect.DISCARD)
            .redirectError(Redirect.DISCARD)
            .start();
    BlockingQueue<TimerRun> handled = new LinkedBlockingQueue<>();
    try {
      await().atMost(Duration.ofSeconds(60)).until(() -> database.count("outbox_timer") == 1);
      goBy(1);
      awaitRun("catch_up begun 1");
      start(builder().on(DAILY, handled::add).subscriber(runs -> runs.lease(HangingNode.LEASE)));
    } finally {
      node.destroyForcibly().waitFor();
    }
    long killed = System.nanoTime();
    assertThat(handled).isEmpty();

    TimerRun again = handled.poll(90, TimeUnit.SECONDS);

    assertThat(again).isNotNull();
    assertThat(Duration.ofNanos(System.nanoTime() - killed))
        .isLessThan(HangingNode.LEASE.plus(LONGEST_POLL));
    assertThat(again.attempt()).isEqualTo(2);
    awaitRun("catch_up succeeded 2");
    assertThat(handled).isEmpty();
  }

  /** What the handler of the first owner does at last. */
  private enum Late {
    FAILS {
      @Override
      Timers.Builder on(Timers.Builder node, TimerHandler waiting) {
        return node.on(
            DAILY,
            run -> {
              waiting.handle(run);
              throw new IllegalStateException("too late");
            });
      }
    },
    SUCCEEDS {
      @Override
      Timers.Builder on(Timers.Builder node, TimerHandler waiting) {
        return node.on(DAILY, waiting);
      }
    },
    SUCCEEDS_IN_A_TRANSACTION {
      @Override
      Timers.Builder on(Timers.Builder node, TimerHandler waiting) {
        return node.on(
            DAILY,
            (run, connection) -> {
              connection.createStatement().execute("insert into effects values (1)");
              waiting.handle(run);
            });
      }
    };

    abstract Timers.Builder on(Timers.Builder node, TimerHandler waiting);
  }

  @ParameterizedTest
  @EnumSource(Late.class)
  void whatANodeDoesTooLateChangesNothingAndIsCounted(Late late) throws Exception {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    CountDownLatch go = new CountDownLatch(1);
    BlockingQueue<TimerRun> first = new LinkedBlockingQueue<>();
    BlockingQueue<TimerRun> second = new LinkedBlockingQueue<>();
    Timers.Builder hanging =
        late.on(
            builder(),
            run -> {
              first.add(run);
              go.await();
            });
    start(
        hanging.subscriber(
            runs ->
                runs.workers(1)
                    .events(MicrometerMetrics.on(registry))
                    .lease(Duration.ofMinutes(10))));
    goBy(1);
    assertThat(first.poll(30, TimeUnit.SECONDS)).isNotNull();
    start(builder().on(DAILY, second::add));

    // its lease is over, as if it had hung
    database.update("update outbox set lease_until = now() - interval '1 millisecond'");
    database.list(String.class, "select pg_notify('outbox_outbox', 'timers.shop')::text");
    TimerRun again = second.poll(60, TimeUnit.SECONDS);
    assertThat(again).isNotNull();
    assertThat(again.attempt()).isEqualTo(2);
    awaitRun("catch_up succeeded 2");
    String inFull = inFull();
    go.countDown();

    await()
        .atMost(Duration.ofSeconds(60))
        .until(
            () ->
                registry.find("outbox.lease.lost").counters().stream()
                        .mapToDouble(Counter::count)
                        .sum()
                    == 1);
    assertThat(inFull()).isEqualTo(inFull);
    assertThat(database.count("effects")).isZero();
    assertThat(database.count("outbox_dlq")).isZero();
    assertThat(database.count("outbox")).isZero();
  }

  private String inFull() {
    return database.one(String.class, "select r::text from outbox_timer_run r");
  }
}
