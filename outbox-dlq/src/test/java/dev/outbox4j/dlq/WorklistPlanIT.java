package dev.outbox4j.dlq;

import static dev.outbox4j.dlq.DeadLetterFilter.any;
import static dev.outbox4j.dlq.DeadLetterFilter.discarded;
import static dev.outbox4j.dlq.DeadLetterFilter.exceptionContains;
import static dev.outbox4j.dlq.DeadLetterFilter.failedBefore;
import static dev.outbox4j.dlq.DeadLetterFilter.failedFrom;
import static dev.outbox4j.dlq.DeadLetterFilter.header;
import static dev.outbox4j.dlq.DeadLetterFilter.ids;
import static dev.outbox4j.dlq.DeadLetterFilter.messageId;
import static dev.outbox4j.dlq.DeadLetterFilter.orderingKey;
import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static dev.outbox4j.dlq.DeadLetterFilter.reason;
import static dev.outbox4j.dlq.DeadLetterFilter.redriven;
import static dev.outbox4j.dlq.DeadLetterFilter.resolved;
import static dev.outbox4j.dlq.DeadLetterFilter.resolvedBefore;
import static dev.outbox4j.dlq.DeadLetterFilter.type;
import static dev.outbox4j.dlq.DeadLetterFilter.unresolved;
import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.FailureReason;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.ServerCounters;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.SQLException;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What is read for a page and for a redrive, counted by the server. */
@ExtendWith(PostgresExtension.class)
@Tag("plans")
class WorklistPlanIT {
  private static final int LETTERS = 100_000;

  private static final String TIMES = "outbox_dlq_failed_idx";
  private static final String OF_QUEUES = "outbox_dlq_queue_failed_idx";

  private final TestDatabase database;

  WorklistPlanIT(TestDatabase database) {
    this.database = database;
  }

  @Test
  void aPageReadsFewPagesOfAHundredThousandLetters() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      counters.run("truncate outbox_dlq restart identity");
      counters.run(
          """
          insert into outbox_dlq (outbox, original_id, lease_token, queue, type, ordering_key,
            payload, deliveries_count, attempts_count, created_at, available_at, failed_at,
            failure_reason, last_exception, resolved_at)
          select 'public.outbox', n, 1, 'queue-' || n %% 4, 'type-' || n %% 10, 'key-' || n %% 1000,
            'x', 1, 1, now(), now(), timestamptz '2026-01-01Z' + n * interval '1 second', 'rejected',
            'an exception', case when n %% 8 = 0 then now() end
          from generate_series(1, %d) n"""
              .formatted(LETTERS));
      counters.run("vacuum analyze outbox_dlq");
      DeadLetterWorklist worklist =
          DeadLetterWorklist.of(
              PostgresOutbox.on(counters.session(), database.table()),
              DeadLetterQueue.in("outbox_dlq"));
      Instant middle = Instant.parse("2026-01-01T14:00:00Z");

      // of an index that has the order: a window of letters is looked at, never all
      reads(counters, worklist, queue("queue-1"), 50, 1_200);
      reads(counters, worklist, unresolved(), 50, 300);
      reads(counters, worklist, resolved(), 50, 300);
      reads(counters, worklist, queue("queue-1").and(failedBefore(middle)), 50, 1_200);
      reads(counters, worklist, queue("queue-1").and(type("type-1")), 50, 1_200);
      // a few letters by an index of their own
      reads(counters, worklist, queue("queue-1").and(orderingKey("key-1")), 50, 300);
      reads(counters, worklist, messageId(77_777), 1, 20);
      reads(counters, worklist, ids(1, 2, 3), 3, 40);
      // what no index leaves out: five windows at most
      reads(counters, worklist, exceptionContains("no such text"), 0, 1_500);

      long before = counters.reads().pages();
      assertThat(
              worklist
                  .where(queue("queue-1").and(orderingKey("key-1")))
                  .redrive(Redrive.by("ann").perSecond(100_000))
                  .done())
          .isEqualTo(100);
      assertThat(counters.reads().pages() - before).isLessThan(6_000);
    }
  }

  /** What the document says of the filters: which one an index serves, and which. */
  @Test
  void anyFilterReadsFewPagesByTheIndexThatIsSaidToServeIt() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      counters.run("truncate outbox_dlq restart identity");
      // large enough that the table has many pages
      counters.run(
          """
          insert into outbox_dlq (outbox, original_id, lease_token, queue, type, ordering_key,
            payload, headers, deliveries_count, attempts_count, created_at, available_at, failed_at,
            failure_reason, last_exception, resolved_at, resolution)
          select 'public.outbox', 1000000 + n, 1, 'queue-' || n %% 4, 'type-' || n %% 10,
            'key-' || n %% 1000, decode(repeat('ab', 600), 'hex'),
            jsonb_build_object('tenant', 't' || n %% 10), 1, 1, now(), now(),
            timestamptz '2026-01-01Z' + n * interval '1 second', 'rejected', 'an exception',
            case when n %% 16 = 0 then now() end, case when n %% 16 = 0 then 'discarded: x' end
          from generate_series(1, %d) n"""
              .formatted(LETTERS));
      counters.run("vacuum analyze outbox_dlq");
      assertThat(counters.size()).isGreaterThanOrEqualTo(10_000);
      Instant begin = Instant.parse("2026-01-01T00:00:00Z");
      Instant middle = begin.plusSeconds(LETTERS / 2);
      DeadLetterFilter ofQueue = queue("queue-1");

      // as many as a page shows, or one window of letters
      served(counters, unresolved(), 50, TIMES);
      served(counters, any(), 50, TIMES);
      served(counters, resolved(), 50, TIMES);
      served(counters, discarded(), 50, TIMES);
      served(counters, failedBefore(middle), 50, TIMES);
      served(counters, failedFrom(begin.plusSeconds(LETTERS - 9)), 9, TIMES);
      served(counters, failedFrom(middle).and(failedBefore(middle.plusSeconds(9))), 8, TIMES);
      served(counters, ofQueue, 50, OF_QUEUES);
      served(counters, ofQueue.and(failedBefore(middle)), 50, OF_QUEUES);
      served(counters, ofQueue.and(failedFrom(middle)), 50, OF_QUEUES);
      served(counters, ofQueue.and(orderingKey("key-1")), 50, "outbox_dlq_key_idx");
      served(counters, ofQueue.and(orderingKey("none")), 0, "outbox_dlq_key_idx");
      served(counters, ids(1, 2, 3), 3, "outbox_dlq_pkey");
      served(counters, messageId(1_077_777), 1, "outbox_dlq_message_idx");
      served(counters, ids(1, 2, 3).and(type("type-1")), 1, "outbox_dlq_pkey");
      readsFewPagesHoweverManyLettersAreNewerOrOlder(counters, begin);
      // 10,000 letters at most, in the order of the index that leaves them
      asked(counters, type("none"), TIMES);
      asked(counters, reason(FailureReason.EXPIRED), TIMES);
      asked(counters, exceptionContains("none"), TIMES);
      asked(counters, header("tenant", "none"), TIMES);
      asked(counters, orderingKey("none"), TIMES);
      asked(counters, redriven(), TIMES);
      asked(counters, resolvedBefore(begin), TIMES);
      asked(counters, queue("none").and(any()), TIMES);
      asked(counters, type("none").and(failedBefore(middle)), TIMES);
      asked(counters, ofQueue.and(type("none")), OF_QUEUES);
      asked(counters, ofQueue.and(header("tenant", "none")), OF_QUEUES);
    }
  }

  /** Of 2,000 letters, of which a page has ten, and two or three of one of the four queues. */
  private static long pagesOfAWindow(String index) {
    return index.equals(OF_QUEUES) ? 1_000 : 300;
  }

  /** What is newer than the page, or older than the filter says, is not gone through. */
  private void readsFewPagesHoweverManyLettersAreNewerOrOlder(
      ServerCounters counters, Instant begin) throws SQLException {
    DeadLetterFilter ofQueue = queue("queue-1");
    Instant lateOnes = begin.plusSeconds(LETTERS - 100);
    Instant middle = begin.plusSeconds(LETTERS / 2);
    Instant after = middle.plusSeconds(100);
    Instant earlyOnes = begin.plusSeconds(400);
    DeadLetterPage.Position last = new DeadLetterPage.Position(earlyOnes, 5);

    readsAPage(counters, unresolved(), last, 50);
    readsAPage(counters, ofQueue, last, 50);
    readsAPage(counters, unresolved().and(failedBefore(middle)), last, 50);
    readsAPage(counters, ofQueue.and(failedBefore(middle)), last, 50);
    readsAPage(counters, ofQueue.and(failedBefore(earlyOnes)), first(), 50);
    readsAPage(counters, ofQueue.and(failedFrom(lateOnes)), last, 0);
    readsAPage(counters, type("type-7").and(failedBefore(earlyOnes)), first(), 40);
    // a window, which goes on behind the oldest one
    served(counters, ofQueue.and(failedFrom(lateOnes)), 25, OF_QUEUES);
    served(counters, ofQueue.and(failedFrom(middle)).and(failedBefore(after)), 25, OF_QUEUES);
    for (DeadLetterFilter filter :
        List.of(
            ofQueue.and(failedBefore(earlyOnes)),
            ofQueue.and(failedFrom(lateOnes)),
            failedBefore(earlyOnes).and(failedFrom(begin)))) {
      long before = counters.reads().pages();
      assertThat(worklist(counters).where(filter).count(1_000)).as("%s", filter).isPositive();
      assertThat(counters.reads().pages() - before).as("count %s", filter).isLessThan(100);
    }
  }

  private static DeadLetterPage.Position first() {
    return new DeadLetterPage.Position(Instant.parse("9999-01-01T00:00:00Z"), Long.MAX_VALUE);
  }

  private void readsAPage(
      ServerCounters counters, DeadLetterFilter filter, DeadLetterPage.Position after, int letters)
      throws SQLException {
    long before = counters.reads().pages();
    assertThat(worklist(counters).where(filter).page(50, after).letters())
        .as("%s behind %s", filter, after)
        .hasSize(letters);
    assertThat(counters.reads().pages() - before)
        .as("%s behind %s", filter, after)
        .isBetween(1L, 150L);
  }

  private void served(ServerCounters counters, DeadLetterFilter filter, int letters, String index)
      throws SQLException {
    readsByIndex(counters, filter, letters, index, pagesOfAWindow(index));
  }

  /** No letter is one of these, so that a page looks at as many as it may. */
  private void asked(ServerCounters counters, DeadLetterFilter filter, String index)
      throws SQLException {
    readsByIndex(counters, filter, 0, index, 5 * pagesOfAWindow(index));
    assertThat(worklist(counters).where(filter).page(50).next())
        .as("there may be more: %s", filter)
        .isPresent();
  }

  private void readsByIndex(
      ServerCounters counters, DeadLetterFilter filter, int letters, String index, long pages)
      throws SQLException {
    ServerCounters.Reads before = counters.reads();
    long scans = counters.scansOfIndex(index);
    assertThat(worklist(counters).where(filter).page(50).letters())
        .as("%s", filter)
        .hasSize(letters);
    ServerCounters.Reads after = counters.reads();
    assertThat(after.pages() - before.pages()).as("%s", filter).isBetween(1L, pages);
    assertThat(after.sequentialScans()).as("%s", filter).isEqualTo(before.sequentialScans());
    assertThat(counters.scansOfIndex(index)).as("%s by %s", filter, index).isGreaterThan(scans);
  }

  private static final String INSERT =
      """
      insert into outbox_dlq (outbox, original_id, lease_token, queue, type, ordering_key,
        payload, deliveries_count, attempts_count, created_at, available_at, failed_at,
        failure_reason, last_exception, resolved_at)
      select '%s', %d + n, 1, '%s', 'type', 'key-' || mod(n, 1000), 'x', 1, 1, now(), now(),
        timestamptz '2026-01-01Z' + n * interval '1 second', 'rejected', 'an exception', %s
      from generate_series(1, %d) n""";

  private static String insert(String outbox, int after, String queue, String resolved, int count) {
    return INSERT.formatted(outbox, after, queue, resolved, count);
  }

  /** Whatever the statistics say: here they are of a table of one letter. */
  @Test
  void aPageAndACountOfAQueueReadFewPagesWithOldStatistics() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      counters.run("truncate outbox_dlq restart identity");
      counters.run(insert("public.outbox", 0, "orders", "null", 1));
      counters.run("vacuum analyze outbox_dlq");
      counters.run(insert("public.outbox", 10, "orders", "null", LETTERS));
      counters.run(insert("public.outbox", 500_000, "rare", "null", 3));
      DeadLetterWorklist worklist = worklist(counters);

      reads(counters, worklist, queue("rare"), 3, 60);
      reads(counters, worklist, queue("none"), 0, 20);
      reads(counters, worklist, messageId(5_000), 1, 20);
      reads(counters, worklist, ids(7), 1, 20);
      long before = counters.reads().pages();
      assertThat(worklist.where(queue("none")).count(10)).isZero();
      assertThat(worklist.where(queue("rare")).count(10)).isEqualTo(3);
      assertThat(counters.reads().pages() - before).isLessThan(60);
    }
  }

  /** By the index of unresolved ones, from one queue to the next. */
  @Test
  void aPageOfUnresolvedLettersPassesResolvedOnesBy() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      counters.run("truncate outbox_dlq restart identity");
      counters.run(insert("public.outbox", 0, "orders", "null", 1));
      counters.run("vacuum analyze outbox_dlq");
      counters.run(
          insert("public.outbox", 10, "orders", "now()", LETTERS)
              .replace("2026-01-01Z", "2026-02-01Z"));
      counters.run(
          insert("public.outbox", 500_000, "rare", "null", 3).replace("'rare'", "'rare-' || n"));

      reads(counters, worklist(counters), unresolved(), 4, 400);
      counters.run("vacuum analyze outbox_dlq");
      reads(counters, worklist(counters), unresolved(), 4, 400);
    }
  }

  @Test
  void aKeyWithVeryManyLettersIsLookedAtWindowByWindow() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      counters.run("truncate outbox_dlq, outbox restart identity");
      counters.run(
          insert("public.outbox", 0, "orders", "null", LETTERS)
              .replace("'key-' || mod(n, 1000)", "'hot'"));
      counters.run("vacuum analyze outbox_dlq");
      DeadLetterWorklist worklist = worklist(counters);
      DeadLetterFilter hot = queue("orders").and(orderingKey("hot"));

      reads(counters, worklist, hot, 50, 1_000);
      long before = counters.reads().pages();
      assertThat(worklist.where(hot).count(50)).isEqualTo(50);
      assertThat(worklist.where(hot).dryRun(Redrive.by("ann").atMost(10)).done()).isEqualTo(10);
      assertThat(counters.reads().pages() - before).isLessThan(2_000);
    }
  }

  @Test
  void aMessageThatFailsAgainFindsItsLetterWithOldStatistics() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      counters.run("truncate outbox_dlq, outbox restart identity");
      counters.run(insert("public.outbox", 0, "orders", "null", 1));
      counters.run("vacuum analyze outbox_dlq");
      counters.run(insert("public.outbox", 10, "orders", "null", LETTERS));
      DeadLetterWorklist worklist = worklist(counters);
      assertThat(worklist.where(messageId(50_000)).redrive(Redrive.by("ann")).done()).isEqualTo(1);
      counters.run(
          "update outbox set lease_until = now() + interval '1 minute', leased_by = 's',"
              + " lease_token = 5");

      long before = counters.reads().pages();
      assertThat(
              DeadLetterQueue.in("outbox_dlq")
                  .bind(PostgresOutbox.on(counters.session(), database.table()).store())
                  .write(List.of(Rows.entry("orders", 50_000, 5)))
                  .done())
          .containsExactly(50_000L);
      assertThat(counters.reads().pages() - before).isLessThan(100);
      assertThat(database.count("outbox_dlq")).isEqualTo(LETTERS + 1);
    }
  }

  @Test
  void toActOnFewLettersBesideManyResolvedOnesReadsFewPages() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      counters.run("truncate outbox_dlq, outbox restart identity");
      counters.run(insert("public.outbox", 0, "orders", "null", 10));
      counters.run("vacuum analyze outbox_dlq");
      counters.run(insert("public.outbox", 100, "orders", "now()", LETTERS));
      counters.run(insert("public.outbox", 500_000, "rare", "null", 6));
      DeadLetterWorklist worklist = worklist(counters);
      Redrive redrive = Redrive.by("ann").perSecond(100_000);

      long before = counters.reads().pages();
      assertThat(worklist.where(queue("rare")).dryRun(redrive).done()).isEqualTo(6);
      assertThat(worklist.where(queue("rare")).redrive(redrive.atMost(2)).done()).isEqualTo(2);
      assertThat(worklist.where(queue("rare")).redrive(redrive).done()).isEqualTo(4);
      assertThat(worklist.where(unresolved()).discard("ann", "x").done()).isEqualTo(10);
      assertThat(worklist.where(unresolved()).redrive(redrive).done()).isZero();
      long after = counters.reads().pages();
      assertThat(after - before).isLessThan(2_000);
      // each letter once, and not all of them for each window
      assertThat(worklist.where(resolvedBefore(Instant.EPOCH)).purge("ann").done()).isZero();
      assertThat(counters.reads().pages() - after).isLessThan(4 * LETTERS);
    }
  }

  @Test
  void lettersOfOtherOutboxesAreNotWalked() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      counters.run("truncate outbox_dlq restart identity");
      counters.run(insert("public.outbox", 0, "orders", "null", 5));
      counters.run(insert("public.other", 10, "orders", "null", 30_000));
      counters.run("vacuum analyze outbox_dlq");

      reads(counters, worklist(counters), queue("orders"), 5, 60);
      reads(counters, worklist(counters), unresolved(), 5, 60);
      assertThat(worklist(counters).where(queue("orders")).page(50).next()).isEmpty();
    }
  }

  /** Of a hundred thousand keys, and of one with as many letters, whatever the statistics say. */
  @Test
  void aPageOfKeysOnHoldReadsTheLettersOfTheseKeysOnly() throws SQLException {
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq")) {
      counters.run("truncate outbox_dlq restart identity");
      counters.run(insert("public.outbox", 0, "orders", "null", 1));
      counters.run("vacuum analyze outbox_dlq");
      counters.run(insert("public.outbox", 10, "orders", "now()", 10_000));
      counters.run(
          insert("public.outbox", 200_000, "orders", "null", LETTERS)
              .replace("mod(n, 1000)", "lpad(n::text, 6, '0')"));
      counters.run(
          insert("public.outbox", 500_000, "hot", "null", LETTERS)
              .replace("'key-' || mod(n, 1000)", "case when n < 9 then 'k' || n else 'last' end"));
      readsKeys(counters);
      counters.run("vacuum analyze outbox_dlq");
      readsKeys(counters);
    }
  }

  private void readsKeys(ServerCounters counters) throws SQLException {
    DeadLetterWorklist worklist = worklist(counters);
    long before = counters.reads().pages();
    List<DeadLetterKey> keys = worklist.keysOnHold("orders", 100, "key-050000");
    assertThat(keys).hasSize(100).allSatisfy(key -> assertThat(key.letters()).isEqualTo(1));
    assertThat(keys.get(0).orderingKey()).isEqualTo("key-050001");
    assertThat(worklist.keysOnHold("hot", 8)).hasSize(8);
    assertThat(worklist.keysOnHold("none", 8)).isEmpty();
    assertThat(counters.reads().pages() - before).isBetween(1L, 1_500L);

    assertThat(worklist.keysOnHold("hot", 1, "k8"))
        .singleElement()
        .satisfies(key -> assertThat(key.letters()).isEqualTo(LETTERS - 8));
  }

  private DeadLetterWorklist worklist(ServerCounters counters) {
    return DeadLetterWorklist.of(
        PostgresOutbox.on(counters.session(), database.table()), DeadLetterQueue.in("outbox_dlq"));
  }

  private static void reads(
      ServerCounters counters,
      DeadLetterWorklist worklist,
      DeadLetterFilter filter,
      int letters,
      long pages)
      throws SQLException {
    long before = counters.reads().pages();
    assertThat(worklist.where(filter).page(50).letters()).as("%s", filter).hasSize(letters);
    assertThat(counters.reads().pages() - before).as("%s", filter).isBetween(1L, pages);
  }
}
