package dev.outbox4j.dlq;

import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** Operators in processes of their own, which are killed, or are small. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class WorklistProcessesIT {
  private static final int KILLED = 128 + 9;

  private final TestDatabase database;
  private final Letters letters;
  private final List<Process> processes = new ArrayList<>();

  WorklistProcessesIT(TestDatabase database) {
    this.database = database;
    this.letters = new Letters(database);
  }

  @BeforeEach
  void clear() {
    letters.clear();
  }

  @AfterEach
  void end() {
    processes.forEach(Process::destroyForcibly);
    letters.clear();
  }

  /** Puts the letters of a queue back. */
  static final class Operator {
    private Operator() {}

    public static void main(String[] arguments) {
      PGSimpleDataSource source = new PGSimpleDataSource();
      source.setUrl(arguments[0]);
      source.setUser(arguments[1]);
      source.setPassword(arguments[2]);
      source.setApplicationName(arguments[3]);
      Redrive redrive = Redrive.by(arguments[3]).perSecond(Integer.parseInt(arguments[4]));
      boolean checks = Boolean.parseBoolean(arguments[5]);
      DeadLetterWorklist.of(PostgresOutbox.on(source, OutboxTable.named("outbox")), Letters.TABLE)
          .where(queue("orders"))
          .redrive(checks ? redrive.checking(letter -> Optional.empty()) : redrive);
    }
  }

  private Process operator(String who, int perSecond) throws Exception {
    return operator(who, perSecond, 256, false);
  }

  private Process operator(String who, int perSecond, int heapMegabytes, boolean checks)
      throws Exception {
    PGSimpleDataSource source = database.plain();
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx" + heapMegabytes + "m",
                "-cp",
                System.getProperty("java.class.path"),
                Operator.class.getName(),
                source.getURL(),
                source.getUser(),
                String.valueOf(source.getPassword()),
                who,
                String.valueOf(perSecond),
                String.valueOf(checks))
            .redirectOutput(Redirect.DISCARD)
            .redirectError(Redirect.DISCARD)
            .start();
    processes.add(process);
    return process;
  }

  private static void kill(Process process) throws InterruptedException {
    assertThat(process.destroyForcibly().waitFor()).isEqualTo(KILLED);
  }

  private DeadLetterAction auditOf(String who) {
    return letters.worklist.audit(10).stream()
        .filter(action -> action.by().equals(who))
        .findFirst()
        .orElseThrow();
  }

  private void standStillInTheSecondBatchOfAnn() {
    letters.trigger(
        "update",
        "outbox_dlq",
        "if new.id = 150 and new.resolved_by = 'ann' then "
            + Letters.standStill()
            + " end if; return new;");
  }

  private void allAreDoneOnceAndInOrder(int count) {
    assertThat(letters.unresolved()).isEmpty();
    assertThat(database.count("outbox")).isEqualTo(count);
    assertThat(database.count("outbox_dlq_trips")).isEqualTo(count);
    assertThat(letters.worklist.audit(10).stream().mapToLong(DeadLetterAction::done).sum())
        .isEqualTo(count);
    assertThat(letters.arrivals("key-0")).hasSize(count / 2).isSorted();
    assertThat(letters.arrivals("key-1")).hasSize(count / 2).isSorted();
  }

  /** The server has all of the statement, and goes on with it. */
  @Test
  void whatAKilledProcessHasSentIsDoneAndCounted() throws Exception {
    letters.keyed("orders", 1, 300);
    letters.noteArrivals();
    standStillInTheSecondBatchOfAnn();
    Process ann = operator("ann", 100_000);
    letters.awaitStandstill();
    kill(ann);
    letters.open();
    await()
        .atMost(Duration.ofSeconds(30))
        .until(() -> database.count("pg_stat_activity where application_name = 'ann'") == 0);
    long before = database.count("outbox");

    assertThat(before).isIn(100L, 200L);
    assertThat(auditOf("ann").done()).isEqualTo(before);
    assertThat(auditOf("ann").status()).isEqualTo("running");
    assertThat(auditOf("ann").endedAt()).isEmpty();

    assertThat(letters.worklist.where(queue("orders")).redrive(Letters.by("bob")).done())
        .isEqualTo(300 - before);
    allAreDoneOnceAndInOrder(300);
  }

  /** The gate stays shut: the server gives up what it was sent. */
  @Test
  void anotherOperatorGoesOnAfterAProcessThatIsKilled() throws Exception {
    letters.keyed("orders", 1, 300);
    letters.noteArrivals();
    standStillInTheSecondBatchOfAnn();
    Process ann = operator("ann", 100_000);
    letters.awaitStandstill();
    kill(ann);

    DeadLetterReport report = letters.worklist.where(queue("orders")).redrive(Letters.by("bob"));

    assertThat(report).isEqualTo(new DeadLetterReport(200, 0, 0, List.of(), true));
    assertThat(auditOf("ann").done()).isEqualTo(100);
    allAreDoneOnceAndInOrder(300);
  }

  @Test
  void aLetterThatIsTooLargeForAProcessStopsNoOther() throws Exception {
    letters.plain("orders", 1, 5);
    database.update(
        "update outbox_dlq set payload = convert_to(repeat('x', 60000000), 'UTF8') where id = 3");

    Process ann = operator("ann", 100_000, 48, true);

    assertThat(ann.waitFor()).isZero();
    assertThat(letters.outbox()).containsExactly(1001L, 1002L, 1004L, 1005L);
    assertThat(letters.worklist.where(queue("orders")).page(1).letters().get(0).note())
        .hasValueSatisfying(
            note ->
                assertThat(note)
                    .startsWith("not redriven: to be checked it would take about 6")
                    .endsWith(" bytes, too many for this process"));
    assertThat(letters.worklist.where(queue("orders")).redrive(Letters.by("bob")).done())
        .isEqualTo(1);
  }

  /** How many somebody put back in those ten seconds in which it was most. */
  private long mostInTenSeconds(String who) {
    return database.one(
        Long.class,
        """
        select max(n) from (
          select count(*) over (
            order by o.created_at range between current row and interval '10 seconds' following) n
          from outbox o join outbox_dlq d on d.original_id = o.id
          where d.resolved_by = ?) windows
        """,
        who);
  }

  @Test
  @Tag("large")
  void aHundredThousandAtARateWithAKillAndTwoOperatorsAreDoneOnce() throws Exception {
    letters.keyed("orders", 1, 100_000);
    letters.noteArrivals();
    Process ann = operator("ann", 1_000);
    await()
        .atMost(Duration.ofSeconds(300))
        .pollInterval(Duration.ofSeconds(1))
        .until(() -> database.count("outbox") > 30_000);
    kill(ann);

    ExecutorService operators = Executors.newFixedThreadPool(2);
    try {
      List<Future<DeadLetterReport>> runs = new ArrayList<>();
      for (String who : List.of("bob", "cid")) {
        runs.add(
            operators.submit(
                () ->
                    letters
                        .worklist
                        .where(queue("orders"))
                        .redrive(Redrive.by(who).perSecond(1_000))));
      }
      for (Future<DeadLetterReport> run : runs) {
        assertThat(run.get().finished()).isTrue();
      }
    } finally {
      operators.shutdownNow();
    }
    allAreDoneOnceAndInOrder(100_000);
    for (String who : List.of("ann", "bob", "cid")) {
      // that it is not less either is told by PaceTest, and measured as a benchmark
      assertThat(mostInTenSeconds(who)).as(who).isLessThanOrEqualTo(10_500);
    }
  }
}
