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
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.Payload;
import dev.outbox4j.dlq.DeadLetterTrip.Outcome;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import dev.outbox4j.spi.LeaseRef;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.postgresql.ds.PGSimpleDataSource;
import org.postgresql.jdbc.PreferQueryMode;

@ExtendWith(PostgresExtension.class)
class WorklistIT {
  private static final DeadLetterQueue TABLE = Letters.TABLE;

  private final TestDatabase database;
  private final Letters letters;
  private final DeadLetterWorklist worklist;

  WorklistIT(TestDatabase database) {
    this.database = database;
    this.letters = new Letters(database);
    this.worklist = letters.worklist;
  }

  @BeforeEach
  void empty() {
    letters.clear();
  }

  /** Letters of messages with these ids, which failed one second after the other. */
  private void letters(String queue, int first, int count) {
    database.update(
        """
        insert into outbox_dlq (id, outbox, original_id, lease_token, queue, type, ordering_key,
          payload, headers, deliveries_count, attempts_count, created_at, available_at, failed_at,
          failure_reason, last_exception)
        select n, 'public.outbox', 1000 + n, 7, ?, 'type-' || n %% 3, 'key-' || n %% 2,
          convert_to('body ' || n, 'UTF8'), jsonb_build_object('tenant', 't' || n %% 4),
          2, 1, now(), now(), timestamptz '2026-01-01 00:00:00Z' + n * interval '1 second',
          case when n %% 5 = 0 then 'rejected' else 'retry_terminal' end, 'java.io.IOException: no ' || n
        from generate_series(?::int, ?::int) n
        """
            .replace("%%", "%"),
        queue,
        first,
        first + count - 1);
  }

  private List<Long> idsOf(DeadLetterFilter filter) {
    List<Long> found = new ArrayList<>();
    DeadLetterPage page = worklist.where(filter).page(7);
    while (true) {
      page.letters().forEach(letter -> found.add(letter.id()));
      if (page.next().isEmpty()) {
        return found;
      }
      page = worklist.where(filter).page(7, page.next().get());
    }
  }

  private static Redrive ann() {
    return Letters.by("ann");
  }

  // ---- looking

  @Test
  void pagesShowTheLatestFirstAndEachLetterOnce() {
    letters("orders", 1, 30);
    letters("mail", 31, 3);

    assertThat(idsOf(queue("orders")))
        .hasSize(30)
        .startsWith(30L, 29L)
        .endsWith(2L, 1L)
        .doesNotHaveDuplicates();
    assertThat(idsOf(unresolved())).hasSize(33).startsWith(33L, 32L, 31L, 30L);
  }

  @Test
  void keysOnHoldAreThoseWithUnresolvedLettersPageByPage() {
    letters("orders", 1, 20); // of two keys
    letters("mail", 21, 2);
    database.update("update outbox_dlq set ordering_key = 'key-' || id where id in (4, 5, 6, 21)");
    database.update("update outbox_dlq set ordering_key = null where id = 7");
    database.update("update outbox_dlq set resolved_at = now() where id in (1, 2, 5)");
    database.update("update outbox_dlq set outbox = 'public.other' where id = 6");

    List<DeadLetterKey> all = worklist.keysOnHold("orders", 1_000);
    assertThat(all)
        .containsExactly(
            new DeadLetterKey("key-0", 7, failed(8), 1_008),
            new DeadLetterKey("key-1", 7, failed(3), 1_003),
            new DeadLetterKey("key-4", 1, failed(4), 1_004));
    assertThat(worklist.keysOnHold("orders", 2)).isEqualTo(all.subList(0, 2));
    assertThat(worklist.keysOnHold("orders", 2, "key-1")).isEqualTo(all.subList(2, 3));
    assertThat(worklist.keysOnHold("orders", 2, "key-00")).isEqualTo(all.subList(1, 3));
    assertThat(worklist.keysOnHold("orders", 2, "key-4")).isEmpty();
    assertThat(worklist.keysOnHold("none", 1)).isEmpty();

    worklist.where(queue("orders").and(orderingKey("key-1"))).discard("ann", "no use");
    assertThat(worklist.keysOnHold("orders", 10))
        .extracting(DeadLetterKey::orderingKey)
        .containsExactly("key-0", "key-4");
    assertThatThrownBy(() -> worklist.keysOnHold("orders", 1_001))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("size is 1001; it must be 1 to 1000");
  }

  private static Instant failed(long id) {
    return Instant.parse("2026-01-01T00:00:00Z").plusSeconds(id);
  }

  @Test
  void eachConditionLeavesTheOthersOut() {
    letters("orders", 1, 20);
    letters("mail", 21, 20);
    database.update("update outbox_dlq set resolved_at = now(), resolved_by = 'bob' where id = 3");
    Instant fifth = Instant.parse("2026-01-01T00:00:05Z");

    assertThat(idsOf(type("type-1").and(queue("orders"))))
        .containsExactly(19L, 16L, 13L, 10L, 7L, 4L, 1L);
    assertThat(idsOf(reason(FailureReason.REJECTED).and(queue("orders"))))
        .containsExactly(20L, 15L, 10L, 5L);
    assertThat(idsOf(reason(FailureReason.EXPIRED, FailureReason.UNDECODABLE))).isEmpty();
    assertThat(idsOf(exceptionContains("no 12"))).containsExactly(12L);
    assertThat(idsOf(header("tenant", "t3").and(queue("orders"))))
        .containsExactly(19L, 15L, 11L, 7L);
    assertThat(idsOf(orderingKey("key-1").and(queue("orders")).and(failedBefore(fifth))))
        .containsExactly(1L);
    assertThat(idsOf(failedFrom(fifth).and(failedBefore(fifth.plusSeconds(2)))))
        .containsExactly(6L, 5L);
    assertThat(idsOf(ids(3, 4, 5))).containsExactly(5L, 4L);
    assertThat(idsOf(ids(3, 4, 5).and(any()))).containsExactly(5L, 4L, 3L);
    assertThat(idsOf(resolved())).containsExactly(3L);
    assertThat(idsOf(messageId(1004))).containsExactly(4L);
    assertThat(worklist.where(queue("orders")).count(100)).isEqualTo(19);
    assertThat(worklist.where(queue("orders")).count(5)).isEqualTo(5);
  }

  @Test
  void asManyConditionsAsAndAllowsCanBeUsed() {
    letters("orders", 1, 3);
    DeadLetterFilter filter = type("type-1");
    for (int i = 1; i < 25; i++) {
      filter = filter.and(failedFrom(Instant.EPOCH.plusSeconds(i)));
    }
    DeadLetterFilter most = filter;

    assertThat(idsOf(most)).containsExactly(1L);
    assertThat(worklist.where(most).count(10)).isEqualTo(1);
    assertThat(worklist.where(most).redrive(ann()).done()).isEqualTo(1);
    assertThatThrownBy(() -> most.and(type("type-1")))
        .hasMessage("The filter has 26 conditions; it may have 25");
  }

  @Test
  void conditionsOnIdsFindLettersWithoutKeysToo() {
    letters("orders", 1, 4);
    database.update("update outbox_dlq set ordering_key = null");

    assertThat(idsOf(ids(1, 2, 3).and(ids(2, 3, 4)))).containsExactly(3L, 2L);
    assertThat(idsOf(messageId(1001).and(messageId(1001)))).containsExactly(1L);
    assertThat(idsOf(ids(1, 2).and(messageId(1002)))).containsExactly(2L);
    assertThat(worklist.where(ids(1, 2).and(ids(2, 3))).redrive(ann()).done()).isEqualTo(1);
  }

  @Test
  void aKeyMayHaveMoreLettersThanOneLook() {
    letters("orders", 1, 4_200);
    DeadLetterSelection key = worklist.where(queue("orders").and(orderingKey("key-1")));

    assertThat(key.count(10_000)).isEqualTo(2_100);
    List<Long> found = new ArrayList<>();
    DeadLetterPage page = key.page(1_000);
    page.letters().forEach(letter -> found.add(letter.id()));
    while (page.next().isPresent()) {
      page = key.page(1_000, page.next().get());
      page.letters().forEach(letter -> found.add(letter.id()));
    }
    assertThat(found).hasSize(2_100).startsWith(4_199L).endsWith(1L).doesNotHaveDuplicates();
    assertThat(key.redrive(ann()).done()).isEqualTo(2_100);
  }

  /** More than a page looks at: it would be empty, and somebody would take that for none. */
  @Test
  void aPageFindsUnresolvedLettersBehindAnyNumberOfResolvedOnes() {
    letters("orders", 1, 2);
    letters("mail", 3, 1);
    letters("orders", 4, 12_498);
    database.update("update outbox_dlq set resolved_at = now() where id between 4 and 12500");
    DeadLetterSelection all = worklist.where(unresolved());

    DeadLetterPage page = all.page(2);
    assertThat(page.letters()).extracting(DeadLetterSummary::id).containsExactly(12_501L, 3L);
    page = all.page(1, page.next().orElseThrow());
    assertThat(page.letters()).extracting(DeadLetterSummary::id).containsExactly(2L);
    page = all.page(2, page.next().orElseThrow());
    assertThat(page.letters()).extracting(DeadLetterSummary::id).containsExactly(1L);
    assertThat(page.next()).isEmpty();
    database.update("delete from outbox_dlq where resolved_at is null");
    assertThat(all.page(2)).isEqualTo(new DeadLetterPage(List.of(), Optional.empty()));
  }

  /** As where very many were resolved while somebody has an old snapshot: here it is a lock. */
  @Test
  void aPageGoesOnWhereTheNextUnresolvedLetterIsNotFoundInTime() throws Exception {
    letters("orders", 1, 12_500);
    database.update("update outbox_dlq set resolved_at = now() where id between 3 and 12500");
    CountingDataSource counted = new CountingDataSource(database.plain());
    try (Connection other = database.plain().getConnection();
        Statement statement = other.createStatement()) {
      other.setAutoCommit(false);
      counted.beforeEach(
          sql -> {
            try {
              other.rollback();
              if (sql.contains("with recursive queues")) {
                statement.execute("lock table outbox_dlq in access exclusive mode");
              }
            } catch (SQLException e) {
              throw new IllegalStateException(e);
            }
          });
      DeadLetterSelection all =
          DeadLetterWorklist.of(PostgresOutbox.on(counted, database.table()), TABLE)
              .where(unresolved());
      DeadLetterPage page = all.page(3);
      assertThat(page.letters()).isEmpty(); // it looks at 10,000
      page = all.page(3, page.next().orElseThrow());
      assertThat(page.letters()).extracting(DeadLetterSummary::id).containsExactly(2L, 1L);
      assertThat(page.next()).isEmpty();
      assertThat(counted.executionsOf("with recursive queues")).isEqualTo(2);
    }
  }

  /** Queues are not declared: a job queue that had no failure yet has no letter either. */
  @Test
  void ofAQueueThatNoLetterHasNothingIsDoneAndTheReportsSaySo() {
    letters("orders", 1, 3);
    String before = state();
    DeadLetterReport nothing = new DeadLetterReport(0, 0, 0, List.of(), true);
    DeadLetterSelection misspelt = worklist.where(queue("order"));

    assertThat(misspelt.count(10)).isZero();
    assertThat(misspelt.dryRun(ann())).isEqualTo(nothing);
    assertThat(misspelt.redrive(ann())).isEqualTo(nothing);
    assertThat(misspelt.discard("ann", "x")).isEqualTo(nothing);
    assertThat(misspelt.purgeUnresolvedToo("ann")).isEqualTo(nothing);
    assertThat(state()).isEqualTo(before);
    assertThat(worklist.audit(10)).hasSize(3).allMatch(action -> action.done() == 0);
  }

  @Test
  void contradictionsFindNothing() {
    letters("orders", 1, 3);

    assertThat(idsOf(queue("orders").and(queue("mail")))).isEmpty();
    assertThat(worklist.where(queue("orders").and(queue("mail"))).count(10)).isZero();
    assertThat(worklist.where(queue("orders").and(queue("mail"))).redrive(ann()).done()).isZero();
    assertThat(worklist.where(resolved().and(unresolved())).redrive(ann()).done()).isZero();
    assertThat(worklist.where(resolved()).dryRun(ann()).done()).isZero();
  }

  @Test
  void pagesGoOnFromInfiniteTimes() {
    letters("orders", 1, 5);
    database.update("update outbox_dlq set failed_at = 'infinity' where id in (4, 5)");
    database.update("update outbox_dlq set failed_at = '-infinity' where id in (1, 2)");

    List<Long> found = new ArrayList<>();
    DeadLetterPage page = worklist.where(unresolved()).page(1);
    while (!page.letters().isEmpty()) {
      found.add(page.letters().get(0).id());
      page = worklist.where(unresolved()).page(1, page.next().orElseThrow());
    }
    assertThat(found).containsExactly(5L, 4L, 3L, 2L, 1L);
  }

  @Test
  void whatAUserGivesIsNeverPartOfAStatement() {
    letters("orders", 1, 2);
    String evil = "'); drop table outbox_dlq; --";

    assertThat(idsOf(queue(evil))).isEmpty();
    assertThat(
            idsOf(
                type(evil)
                    .and(orderingKey(evil))
                    .and(exceptionContains(evil))
                    .and(header(evil, evil))))
        .isEmpty();
    assertThat(database.count("outbox_dlq")).isEqualTo(2);
  }

  @Test
  void aLetterIsShownWholeAndThoseOfOtherOutboxesAreNot() throws Exception {
    letters("orders", 1, 2);
    database.update("update outbox_dlq set outbox = 'other.outbox' where id = 2");

    DeadLetter letter = worklist.find(1).orElseThrow();
    assertThat(letter.payload()).isEqualTo(Payload.ofText("body 1"));
    assertThat(letter.headers()).isEqualTo(Map.of("tenant", "t1"));
    assertThat(letter.exception()).contains("java.io.IOException: no 1");
    assertThat(letter.summary().messageId()).isEqualTo(1001);
    assertThat(worklist.find(2)).isEmpty();
    assertThat(worklist.find(3)).isEmpty();
    assertThat(idsOf(any())).containsExactly(1L);
    assertThat(worklist.where(any()).discard("ann", "test").done()).isEqualTo(1);
    assertThat(database.count("outbox_dlq where resolved_at is null")).isEqualTo(1);
  }

  // ---- redriving

  @Test
  void aRedriveKeepsWhatTheMessageWasAndIsOnRecord() {
    letters("orders", 1, 3);
    database.update("update outbox_dlq set timer_id = 'timer' where id = 1");

    DeadLetterReport report = worklist.where(ids(1)).redrive(ann().note("the bank is back"));

    assertThat(report).isEqualTo(new DeadLetterReport(1, 0, 0, List.of(), true));
    assertThat(
            database.one(
                Boolean.class,
                """
                select (id, lease_token, queue, type, ordering_key, payload, headers, timer_id,
                    attempts_count, deliveries_count)
                  = (1001::bigint, 7::bigint, 'orders', 'type-1', 'key-1',
                    convert_to('body 1', 'UTF8'), '{"tenant": "t1"}'::jsonb, 'timer', 0, 0)
                from outbox
                """))
        .isTrue();
    DeadLetterSummary letter = worklist.find(1).orElseThrow().summary();
    assertThat(letter.resolution().orElseThrow().what()).isEqualTo("redriven");
    assertThat(letter.resolution().orElseThrow().by()).isEqualTo("ann");
    assertThat(letter.redrives()).isEqualTo(1);
    DeadLetterTrip trip = worklist.history(1).get(0);
    assertThat(trip.number()).isEqualTo(1);
    assertThat(trip.note()).contains("the bank is back");
    assertThat(trip.outcome()).isEqualTo(Outcome.WAITING);
    assertThat(trip.failure().exception()).contains("java.io.IOException: no 1");
    database.update("delete from outbox");
    assertThat(worklist.history(1).get(0).outcome()).isEqualTo(Outcome.GONE);
    DeadLetterAction action = worklist.audit(10).get(0);
    assertThat(action.action()).isEqualTo("redrive");
    assertThat(action.by()).isEqualTo("ann");
    assertThat(action.filter()).isEqualTo("unresolved, id 1");
    assertThat(action.status()).isEqualTo("completed");
    assertThat(action.done()).isEqualTo(1);
    assertThat(action.endedAt()).isPresent();
  }

  @Test
  void aMessageThatFailsAgainIsTheSameLetterWithAHistory() {
    letters("orders", 1, 1);
    worklist.where(unresolved()).redrive(ann());
    fail(1001, "second failure");

    assertThat(database.count("outbox")).isZero();
    assertThat(database.count("outbox_dlq")).isEqualTo(1);
    DeadLetter letter = worklist.find(1).orElseThrow();
    assertThat(letter.summary().resolution()).isEmpty();
    assertThat(letter.exception()).contains("second failure");
    assertThat(letter.summary().reason()).isEqualTo("rejected");
    assertThat(worklist.history(1))
        .extracting(DeadLetterTrip::outcome)
        .containsExactly(Outcome.FAILED_AGAIN);

    worklist.where(unresolved()).redrive(ann());
    assertThat(worklist.history(1))
        .extracting(DeadLetterTrip::outcome)
        .containsExactly(Outcome.FAILED_AGAIN, Outcome.WAITING);
    assertThat(worklist.history(1).get(1).failure().exception()).contains("second failure");
  }

  /** A message of the outbox fails for good. */
  private void fail(long id, String exception) {
    database.update(
        "update outbox set lease_until = now() + interval '1 minute', leased_by = 's',"
            + " lease_token = lease_token + 1 where id = ?",
        id);
    long token = database.one(Long.class, "select lease_token from outbox where id = " + id);
    String queue = database.one(String.class, "select queue from outbox where id = " + id);
    DeadLetterWriter writer =
        TABLE.bind(PostgresOutbox.on(database.plain(), database.table()).store());
    assertThat(
            writer
                .write(
                    List.of(
                        new DeadLetterEntry(
                            new LeaseRef(queue, id, token), FailureReason.REJECTED, 1, exception)))
                .done())
        .containsExactly(id);
  }

  @Test
  void aMessageThatWasNeverRedrivenIsALetterOfItsOwn() {
    letters("orders", 1, 1);
    database.update("update outbox_dlq set resolved_at = now(), resolution = 'discarded: x'");
    database.update("insert into outbox (id, queue, payload) values (1001, 'orders', '')");

    fail(1001, "another");

    assertThat(database.count("outbox_dlq")).isEqualTo(2);
    assertThat(database.count("outbox_dlq where resolved_at is null")).isEqualTo(1);
  }

  @Test
  void goesBackInTheOrderOfTheMessages() {
    letters("orders", 1, 250);
    // the first has failed again, and last
    database.update("update outbox_dlq set failed_at = now() where id = 1");
    database.update("create table if not exists arrivals (n bigserial, id bigint)");
    database.update("truncate arrivals");
    database.update(
        "create or replace function arrive() returns trigger language plpgsql as"
            + " $$ begin insert into arrivals (id) values (new.id); return new; end $$");
    database.update(
        "create trigger arrive before insert on outbox for each row execute function arrive()");
    try {
      assertThat(worklist.where(queue("orders")).redrive(ann()).done()).isEqualTo(250);
    } finally {
      database.update("drop trigger arrive on outbox");
    }
    assertThat(database.list(Long.class, "select id from arrivals order by n"))
        .isSorted()
        .hasSize(250);
  }

  @Test
  void aLiveMessageWithItsIdOrTimerKeepsALetterBackAndNoOther() {
    letters("orders", 1, 4);
    database.update("update outbox_dlq set timer_id = 'timer-' || id, ordering_key = null");
    database.update("insert into outbox (id, queue, payload) values (1001, 'orders', '')");
    database.update(
        "insert into outbox (queue, payload, timer_id) values ('orders', '', 'timer-2')");

    DeadLetterReport dry = worklist.where(queue("orders")).dryRun(ann());
    DeadLetterReport report = worklist.where(queue("orders")).redrive(ann());

    assertThat(dry).isEqualTo(report);
    assertThat(report.done()).isEqualTo(2);
    assertThat(report.refusals())
        .containsExactlyInAnyOrder(
            new DeadLetterReport.Refusal(1, "a message with its id is in the outbox"),
            new DeadLetterReport.Refusal(2, "a live message has its timer id"));
    assertThat(idsOf(unresolved())).containsExactly(2L, 1L);
    assertThat(worklist.audit(1).get(0).refused()).isEqualTo(2);
  }

  @Test
  void twoLettersOfOneTimerGoBackOneAndTheOtherIsNamed() {
    letters("orders", 1, 3);
    database.update("update outbox_dlq set timer_id = 'timer' where id in (1, 2)");

    DeadLetterReport report = worklist.where(queue("orders")).redrive(ann());

    assertThat(report.done()).isEqualTo(2);
    assertThat(report.refused()).isEqualTo(1);
    assertThat(idsOf(unresolved())).containsExactly(2L);
  }

  @Test
  void aDryRunChangesNothing() {
    letters("orders", 1, 3);
    String before = state();

    DeadLetterReport report =
        worklist
            .where(queue("orders"))
            .dryRun(
                ann()
                    .checking(
                        letter ->
                            letter.summary().id() == 2 ? Optional.of("bad") : Optional.empty()));

    assertThat(report.done()).isEqualTo(2);
    assertThat(report.refusals()).containsExactly(new DeadLetterReport.Refusal(2, "bad"));
    assertThat(state()).isEqualTo(before);
    assertThat(worklist.audit(10)).isEmpty();
  }

  private String state() {
    return database.one(
        String.class,
        "select coalesce((select string_agg(d::text, ';' order by id) from outbox_dlq d), '')"
            + " || (select count(*) from outbox) || (select count(*) from outbox_dlq_trips)");
  }

  @Test
  void aLetterThatACheckRefusesStaysAndSaysWhy() {
    letters("orders", 1, 3);
    database.update("update outbox_dlq set ordering_key = null");

    DeadLetterReport report =
        worklist
            .where(queue("orders"))
            .redrive(
                ann()
                    .checking(
                        letter -> {
                          if (letter.summary().id() == 1) {
                            throw new IllegalStateException("secret");
                          }
                          return letter.summary().id() == 2
                              ? Optional.of("no such customer")
                              : Optional.empty();
                        }));

    assertThat(report.done()).isEqualTo(1);
    assertThat(report.refusals())
        .containsExactly(
            new DeadLetterReport.Refusal(1, "a check threw java.lang.IllegalStateException"),
            new DeadLetterReport.Refusal(2, "no such customer"));
    assertThat(idsOf(unresolved())).containsExactly(2L, 1L);
    assertThat(worklist.find(2).orElseThrow().summary().note())
        .contains("not redriven: no such customer");
    assertThat(worklist.audit(1).get(0).refused()).isEqualTo(2);
  }

  @Test
  void aProbeThatFailsStopsTheRunBeforeTheFirstLetter() {
    letters("orders", 1, 3);
    String before = state();

    assertThatThrownBy(
            () ->
                worklist
                    .where(queue("orders"))
                    .redrive(
                        ann()
                            .probing(
                                () -> {
                                  throw new IllegalStateException("still down");
                                })))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("nothing was redriven")
        .hasMessageContaining("still down");
    assertThat(state()).isEqualTo(before);
    assertThat(worklist.audit(10)).isEmpty();
  }

  @Test
  void noMoreGoBackThanTheLimit() {
    letters("orders", 1, 30);

    assertThat(worklist.where(queue("orders")).redrive(ann().atMost(12)).done()).isEqualTo(12);
    assertThat(database.count("outbox")).isEqualTo(12);
    assertThat(database.one(Long.class, "select max(id) from outbox")).isEqualTo(1012);
  }

  @Test
  void ofTwoWhoRedriveAtOnceEachLetterGoesBackOnce() throws Exception {
    letters("orders", 1, 2_000);
    ExecutorService operators = Executors.newFixedThreadPool(4);
    try {
      List<Callable<DeadLetterReport>> runs =
          List.of("ann", "bob", "cid", "dee").stream()
              .<Callable<DeadLetterReport>>map(
                  who ->
                      () ->
                          worklist
                              .where(queue("orders"))
                              .redrive(Redrive.by(who).perSecond(100_000)))
              .toList();
      long done = 0;
      for (Future<DeadLetterReport> run : operators.invokeAll(runs)) {
        done += run.get().done();
      }
      assertThat(done).isEqualTo(2_000);
    } finally {
      operators.shutdown();
    }
    assertThat(database.count("outbox")).isEqualTo(2_000);
    assertThat(database.count("outbox_dlq_trips")).isEqualTo(2_000);
    assertThat(worklist.audit(10).stream().mapToLong(DeadLetterAction::done).sum())
        .isEqualTo(2_000);
  }

  @Test
  void aLetterThatAStrangerLocksHoldsUpNoOtherWithoutAKey() throws Exception {
    letters("orders", 1, 5);
    database.update("update outbox_dlq set ordering_key = null");
    try (Letters.Lock lock = letters.lock(3)) {
      DeadLetterReport report = worklist.where(queue("orders")).redrive(ann());

      assertThat(report.done()).isEqualTo(4);
      assertThat(report.passedBy()).isEqualTo(1);
    }
    assertThat(worklist.where(queue("orders")).redrive(ann()).done()).isEqualTo(1);
  }

  @Test
  void whatFailsDuringTheRunIsNotOneOfItsLetters() {
    letters("orders", 1, 300);
    AtomicInteger seen = new AtomicInteger();

    DeadLetterReport report =
        worklist
            .where(queue("orders"))
            .redrive(
                ann()
                    .checking(
                        letter -> {
                          if (seen.incrementAndGet() == 150) {
                            fail(1001, "again");
                          }
                          return Optional.empty();
                        }));

    assertThat(report.done()).isEqualTo(300);
    assertThat(idsOf(unresolved())).containsExactly(1L);
  }

  @Test
  void anInterruptEndsTheRunAndTheAuditSaysSo() {
    letters("orders", 1, 300);

    DeadLetterReport report =
        worklist
            .where(queue("orders"))
            .redrive(
                ann()
                    .checking(
                        letter -> {
                          if (letter.summary().id() == 150) {
                            Thread.currentThread().interrupt();
                          }
                          return Optional.empty();
                        }));

    assertThat(Thread.interrupted()).isTrue();
    assertThat(report.finished()).isFalse();
    assertThat(report.done()).isLessThan(300).isEqualTo(database.count("outbox"));
    assertThat(worklist.audit(1).get(0).status()).isEqualTo("stopped");
    assertThat(worklist.where(queue("orders")).redrive(ann()).finished()).isTrue();
    assertThat(database.count("outbox")).isEqualTo(300);
  }

  // ---- editing

  @Test
  void aChangedMessageGoesBackAndTheOriginalIsKept() {
    letters("orders", 1, 2);

    DeadLetterReport report =
        worklist.redrive(
            1,
            DeadLetterEdit.payload(Payload.ofText("mended"))
                .andType("order.placed")
                .andHeader("mended-by", "ann \"x\" \\ {}")
                .andWithoutHeader("tenant"),
            ann().note("typo"));

    assertThat(report.done()).isEqualTo(1);
    assertThat(
            database.one(
                Boolean.class,
                """
                select (id, type, ordering_key, payload, headers)
                  = (1001::bigint, 'order.placed', 'key-1', convert_to('mended', 'UTF8'),
                    jsonb_build_object('mended-by', 'ann "x" \\ {}'))
                from outbox
                """))
        .isTrue();
    DeadLetterTrip.Original original = worklist.history(1).get(0).original().orElseThrow();
    assertThat(original.payload()).isEqualTo(Payload.ofText("body 1"));
    assertThat(original.type()).contains("type-1");
    assertThat(original.headers()).isEqualTo(Map.of("tenant", "t1"));

    fail(1001, "again");
    assertThat(worklist.find(1).orElseThrow().payload()).isEqualTo(Payload.ofText("mended"));
    assertThat(worklist.history(1).get(0).original().orElseThrow().payload())
        .isEqualTo(Payload.ofText("body 1"));
  }

  @Test
  void aChangedMessageIsCheckedAsItIsToBeSent() {
    letters("orders", 1, 1);

    DeadLetterReport report =
        worklist.redrive(
            1,
            DeadLetterEdit.payload(Payload.ofText("worse")),
            ann()
                .checking(
                    letter ->
                        letter.payload().equals(Payload.ofText("worse"))
                            ? Optional.of("it is worse")
                            : Optional.empty()));

    assertThat(report.refusals()).containsExactly(new DeadLetterReport.Refusal(1, "it is worse"));
    assertThat(database.count("outbox")).isZero();
  }

  @Test
  void whatIsResolvedOrUnknownCannotBeChanged() {
    letters("orders", 1, 1);
    worklist.where(ids(1)).discard("bob", "test data");

    assertThatThrownBy(() -> worklist.redrive(1, DeadLetterEdit.type("t"), ann()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Dead letter 1 was resolved by bob: discarded: test data");
    assertThatThrownBy(() -> worklist.redrive(2, DeadLetterEdit.type("t"), ann()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("There is no dead letter 2 of this outbox in outbox_dlq");
    assertThatThrownBy(() -> worklist.where(ids(1, 2)).redrive(ann()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("There is no dead letter 2 of this outbox in outbox_dlq; nothing was done");
    assertThatThrownBy(() -> worklist.where(ids(3)).discard("ann", "x"))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> worklist.where(ids(3)).purge("ann"))
        .isInstanceOf(IllegalArgumentException.class);
  }

  // ---- discarding and deleting

  @Test
  void discardedLettersSayWhyAndAreNotPutBack() {
    letters("orders", 1, 5);

    assertThat(worklist.where(reason(FailureReason.REJECTED)).discard("ann", "test data").done())
        .isEqualTo(1);

    assertThat(worklist.find(5).orElseThrow().summary().resolution().orElseThrow().what())
        .isEqualTo("discarded: test data");
    assertThat(worklist.where(queue("orders").and(any())).redrive(ann()).done()).isEqualTo(4);
    assertThat(worklist.audit(2))
        .extracting(DeadLetterAction::action)
        .containsExactly("redrive", "discard");
  }

  /** By what was done, whatever the reason of a discard says. */
  @Test
  void whatWasPutBackAndWhatWasDiscardedAreToldApart() {
    letters("orders", 1, 7);
    worklist.where(ids(1, 2)).redrive(ann());
    worklist.redrive(3, DeadLetterEdit.type("other"), ann());
    worklist.where(ids(4, 5)).discard("ann", "it was redriven");
    fail(1002, "again");
    database.update(
        "update outbox_dlq set resolved_at = now(), resolution = 'handled by mail' where id = 6");

    assertThat(idsOf(redriven())).containsExactly(3L, 1L);
    assertThat(idsOf(discarded())).containsExactly(5L, 4L);
    assertThat(idsOf(resolved())).containsExactly(6L, 5L, 4L, 3L, 1L);
    assertThat(worklist.where(discarded()).redrive(ann()).done()).isZero();
    assertThat(worklist.where(discarded()).count(10)).isEqualTo(2);

    Instant soon = Instant.now().plusSeconds(3_600);
    assertThat(worklist.where(discarded().and(resolvedBefore(soon))).purge("ann").done())
        .isEqualTo(2);
    assertThat(idsOf(any())).containsExactly(2L, 7L, 6L, 3L, 1L);
    assertThat(worklist.where(redriven()).purge("ann").refused()).as("they wait").isEqualTo(2);
    assertThat(worklist.audit(2))
        .extracting(DeadLetterAction::filter)
        .containsExactly("redriven", "discarded, resolved before " + soon);
  }

  @Test
  void aPurgeTakesNoUnresolvedLetterUnlessItIsForced() {
    letters("orders", 1, 6);
    worklist.where(ids(1, 2, 3)).redrive(ann());
    database.update("delete from outbox");
    Instant third = Instant.parse("2026-01-01T00:00:03Z");

    assertThat(worklist.where(queue("orders").and(failedBefore(third))).purge("ann").done())
        .isEqualTo(2);
    assertThat(idsOf(any())).containsExactly(6L, 5L, 4L, 3L);
    assertThat(database.list(Long.class, "select dead_letter from outbox_dlq_trips"))
        .containsExactly(3L);
    assertThat(worklist.where(unresolved()).purge("ann").done()).isZero();
    assertThat(worklist.where(queue("orders")).purgeUnresolvedToo("ann").done()).isEqualTo(4);
    assertThat(database.count("outbox_dlq")).isZero();
    assertThat(database.count("outbox_dlq_trips")).isZero();
  }

  // ---- elsewhere

  @Test
  void worksInSchemasOfOtherNamesThatAreNotOnTheSearchPath() {
    OutboxMigrations.of("Sales Dept", "Out-Box 1")
        .deadLetters("Archive", "dead letters")
        .migrate(database.plain());
    database.update("truncate \"Archive\".\"dead letters\"");
    database.update(
        """
        insert into "Archive"."dead letters" (outbox, original_id, lease_token, queue, payload,
          deliveries_count, attempts_count, created_at, available_at, failure_reason)
        values ('Sales Dept.Out-Box 1', 5, 1, 'orders', '', 1, 1, now(), now(), 'rejected')
        """);
    DeadLetterWorklist list =
        DeadLetterWorklist.of(
            PostgresOutbox.on(
                database.plain(), OutboxTable.named("Out-Box 1").inSchema("Sales Dept")),
            DeadLetterQueue.in("Archive", "dead letters"));

    assertThat(list.where(queue("orders")).redrive(ann()).done()).isEqualTo(1);
    assertThat(database.count("\"Sales Dept\".\"Out-Box 1\" where id = 5")).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource({"extended, unspecified", "extendedCacheEverything, varchar"})
  void theDriversSettingsDoNotMatter(String queryMode, String stringType) {
    letters("orders", 1, 12);
    PGSimpleDataSource sessions = database.plain();
    sessions.setPreferQueryMode(PreferQueryMode.of(queryMode));
    sessions.setStringType(stringType);
    sessions.setPrepareThreshold(1);
    DeadLetterWorklist list =
        DeadLetterWorklist.of(PostgresOutbox.on(sessions, database.table()), TABLE);
    DeadLetterSelection one =
        list.where(
            queue("orders")
                .and(type("type-1"))
                .and(header("tenant", "t1"))
                .and(exceptionContains("no"))
                .and(orderingKey("key-1"))
                .and(failedFrom(Instant.EPOCH))
                .and(reason(FailureReason.RETRY_TERMINAL)));

    assertThat(one.page(5).letters()).extracting(DeadLetterSummary::id).containsExactly(1L);
    assertThat(one.count(5)).isEqualTo(1);
    assertThat(one.redrive(ann().checking(letter -> Optional.of("no"))).refused()).isEqualTo(1);
    assertThat(list.find(1).orElseThrow().summary().note()).contains("not redriven: no");
    assertThat(list.where(ids(1, 2)).redrive(ann().note("why")).done()).isEqualTo(2);
    DeadLetterEdit edit = DeadLetterEdit.header("a", "b").andPayload(Payload.ofText("\u00e9"));
    assertThat(list.redrive(3, edit, ann()).done()).isEqualTo(1);
    assertThat(
            database.one(
                Boolean.class,
                "select payload = convert_to(chr(233), 'UTF8') and headers ->> 'a' = 'b'"
                    + " from outbox where id = 1003"))
        .isTrue();
    assertThat(list.history(3).get(0).original().orElseThrow().payload())
        .isEqualTo(Payload.ofText("body 3"));
    assertThat(list.where(ids(4)).discard("ann", "x").done()).isEqualTo(1);
    assertThat(list.where(ids(4)).purge("ann").done()).isEqualTo(1);
    assertThat(list.audit(10)).hasSize(5);
  }

  /** Then the driver sends each statement in a transaction of its own. */
  @Test
  void nothingIsDoneInSimpleQueryMode() {
    letters("orders", 1, 3);
    PGSimpleDataSource simple = database.plain();
    simple.setPreferQueryMode(PreferQueryMode.SIMPLE);
    DeadLetterWorklist list =
        DeadLetterWorklist.of(PostgresOutbox.on(simple, database.table()), TABLE);
    String before = state();

    assertThat(list.where(queue("orders")).page(5).letters()).hasSize(3);
    for (ThrowingCallable act :
        List.<ThrowingCallable>of(
            () -> list.where(queue("orders")).redrive(ann()),
            () -> list.redrive(1, DeadLetterEdit.type("x"), ann()),
            () -> list.where(queue("orders")).discard("ann", "x"),
            () -> list.where(queue("orders")).purgeUnresolvedToo("ann"))) {
      assertThatThrownBy(act)
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("not run in one transaction")
          .hasMessageContaining("preferQueryMode");
    }
    assertThat(state()).isEqualTo(before);
    assertThat(worklist.audit(1)).isEmpty();
  }

  @Test
  void badValuesAreRefusedWhereTheyAreGiven() {
    assertThatThrownBy(() -> Redrive.by(" ")).hasMessageContaining("by is blank");
    assertThatThrownBy(() -> Redrive.by("a").perSecond(0))
        .hasMessage("perSecond is 0; it must be 1 to 100000");
    assertThatThrownBy(() -> Redrive.by("a").atMost(0))
        .hasMessage("atMost is 0; it must be 1 or more");
    assertThatThrownBy(() -> worklist.where(unresolved()).page(0))
        .hasMessage("size is 0; it must be 1 to 1000");
    assertThatThrownBy(() -> worklist.where(unresolved()).count(0))
        .hasMessage("most is 0; it must be 1 or more");
    assertThatThrownBy(() -> worklist.where(unresolved()).discard("a", ""))
        .hasMessageContaining("reason is blank");
    assertThatThrownBy(DeadLetterFilter::ids).hasMessage("There are 0 ids; give 1 to 10000");
    assertThatThrownBy(() -> reason()).hasMessage("There is no reason; give one or more");
    assertThatThrownBy(() -> queue("")).isInstanceOf(IllegalArgumentException.class);
    for (Instant instant : List.of(Instant.MIN, Instant.MAX)) {
      assertThatThrownBy(() -> failedBefore(instant))
          .hasMessage("instant is " + instant + "; it must be of the years 1 to 9999");
      assertThatThrownBy(() -> failedFrom(instant)).isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> resolvedBefore(instant))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> exceptionContains("x".repeat(1025)))
        .hasMessage("text has 1025 bytes; it may have 1024, so shorten it");
    assertThatThrownBy(() -> header("h", "x".repeat(1025)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> worklist.audit(0)).hasMessage("limit is 0; it must be 1 to 10000");
  }
}
