package dev.outbox4j.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.FailureReason;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** A job that kills its process at each delivery. */
@ExtendWith(PostgresExtension.class)
class JobPoisonIT {
  private static final int BUDGET = JobQueue.Builder.DEFAULT_BUDGET;

  private final TestDatabase database;
  private final JobKit kit;

  JobPoisonIT(TestDatabase database) {
    this.database = database;
    this.kit = new JobKit(database, database.pool(4));
  }

  @BeforeEach
  void setUp() {
    JobKit.migrate(database);
    database.update("create table if not exists calls (at timestamptz default clock_timestamp())");
    database.update("truncate calls");
  }

  private Process node() throws IOException {
    PGSimpleDataSource source = database.plain();
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-XX:TieredStopAtLevel=1",
            "-cp",
            System.getProperty("java.class.path"),
            PoisonedNode.class.getName(),
            source.getURL(),
            String.valueOf(source.getUser()),
            String.valueOf(source.getPassword()))
        .redirectOutput(Redirect.DISCARD)
        .redirectError(Redirect.DISCARD)
        .start();
  }

  /** Each of the processes takes seconds to begin. */
  @Test
  @Tag("large")
  void isDeadLetteredWhenItsBudgetIsSpentWithoutACallMore() throws Exception {
    JobQueue producer = kit.builder().knows(PoisonedNode.POISON).build();
    EnqueueResult result = producer.enqueue(Job.of(PoisonedNode.POISON, "bang"));
    for (int delivery = 1; delivery <= BUDGET; delivery++) {
      Process node = node();
      try {
        assertThat(node.waitFor(2, TimeUnit.MINUTES)).isTrue();
      } finally {
        node.destroyForcibly();
      }
      assertThat(database.count("calls")).isEqualTo(delivery);
      JobStatus status = producer.status(result.jobId()).orElseThrow();
      assertThat(status.state().isFinal()).isFalse();
      assertThat(status.deliveries()).isEqualTo(delivery);
      // the lease is over, as if it had been waited for
      database.update("update outbox set lease_until = now() - interval '1 millisecond'");
    }

    Process last = node();
    try {
      await()
          .atMost(Duration.ofMinutes(2))
          .until(
              () ->
                  producer.status(result.jobId()).orElseThrow().state() == JobState.DEAD_LETTERED);
      assertThat(last.isAlive()).isTrue();
    } finally {
      last.destroyForcibly().waitFor();
    }

    JobStatus dead = producer.status(result.jobId()).orElseThrow();
    assertThat(dead.reason()).contains(FailureReason.MAX_DELIVERIES.code());
    assertThat(database.count("calls")).isEqualTo(BUDGET);
    assertThat(kit.messages()).isZero();
    assertThat(database.one(byte[].class, "select payload from outbox_dlq"))
        .isEqualTo("bang".getBytes(StandardCharsets.UTF_8));
    assertThat(producer.enqueue(Job.of(PoisonedNode.POISON, "bang")).enqueued()).isTrue();
  }
}
