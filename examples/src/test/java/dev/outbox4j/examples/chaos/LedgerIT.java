package dev.outbox4j.examples.chaos;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.examples.chaos.Duplicates.Bounded;
import dev.outbox4j.examples.chaos.Duplicates.Reason;
import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.postgresql.ds.PGSimpleDataSource;

/** A figure that must be zero is worth no more than what it finds, so each fault is planted. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class LedgerIT {
  private static final Duration LEASE = Duration.ofSeconds(5);
  private static final Duration RETRY_DELAY = Duration.ofMillis(200);
  private static final String OWNER = "s0.1";
  private static final String OTHER = "s1.2";
  private static final long ROW = 7;
  private static final Duration TEN_SECONDS = Duration.ofSeconds(10);

  private final TestDatabase database;
  private final LedgerSchema schema;
  private final Ledger ledger;

  LedgerIT(TestDatabase database) throws SQLException {
    this.database = database;
    this.schema = new LedgerSchema(database.plain(), LEASE);
    this.ledger = new Ledger(database.plain());
    if (database.one(String.class, "select to_regclass('committed')::text") == null) {
      OrderedMigrations.of("public", "outbox", Subscriber.ORDERED_QUEUE).migrate(database.plain());
      schema.create();
    }
  }

  @BeforeEach
  void oneCommittedMessageUnderTheOwnersLease() {
    database.update(
        "truncate outbox, outbox_dlq, committed, handled, deleted, retried, stale, stolen, misdated,"
            + " faults, episodes, pauses, dead_letters_kept");
    database.update("update counters set counted = 0");
    commit(1, ROW, "NORMAL");
    insertRow(ROW);
    claim(OWNER);
  }

  @Test
  void findsNothingWhereNothingIsWrong() throws SQLException {
    renew(OWNER);
    effect(OWNER, 1);
    ack(OWNER);
    commit(2, 8, "POISON");
    insertRow(8);
    claim(OTHER);
    deadLetter(OTHER, 8);

    assertThat(breaches()).isEmpty();
    assertThat(ledger.committed()).isEqualTo(2);
    assertThat(ledger.kinds()).isEqualTo(Map.of("normal", 1L, "poison", 1L));
    assertThat(ledger.deadLetters()).isEqualTo(1);
    assertThat(ledger.duplicates().all()).isZero();
  }

  @Test
  void findsALostMessage() throws SQLException {
    database.update("truncate outbox");

    assertThat(breaches()).isEqualTo(Map.of("lost", 1L));
  }

  @Test
  void findsAMessageThatWasHandledAfterARollback() throws SQLException {
    effect(OWNER, 1);
    ack(OWNER);
    database.update("delete from committed");

    assertThat(breaches()).isEqualTo(Map.of("handledAfterRollback", 1L));
  }

  @Test
  void findsAnAckByAnotherThanTheOwnerThoughTheOwnerHandledTheMessage() throws SQLException {
    effect(OWNER, 1);
    ack(OTHER);

    assertThat(breaches()).isEqualTo(Map.of("staleAcks", 1L));
  }

  @Test
  void findsAnAckBeforeTheHandlerEnded() throws SQLException {
    ack(OWNER);
    effect(OWNER, 1);

    assertThat(breaches()).isEqualTo(Map.of("staleAcks", 1L));
  }

  @Test
  void findsAnAckUnderALeaseThatWasGivenUp() throws SQLException {
    effect(OWNER, 1);
    as(OWNER, "update outbox set lease_until = null, leased_by = null");
    ack(OWNER);

    assertThat(breaches()).isEqualTo(Map.of("staleAcks", 1L));
  }

  @ParameterizedTest
  @CsvSource({
    "'lease_until = now() + interval ''5 s'''",
    "'lease_until = null, leased_by = null'",
    "'attempts_count = attempts_count + 1, available_at = now() + interval ''200 ms'', lease_until = null'"
  })
  void findsARenewalAReleaseAndARetryByAnotherThanTheOwner(String write) throws SQLException {
    as(OTHER, "update outbox set " + write);

    assertThat(ledger.staleAcks()).isEqualTo(1);
  }

  @Test
  void findsADeadLetterByAnotherThanTheOwner() throws SQLException {
    database.update("update committed set kind = 'POISON'");
    deadLetter(OTHER, ROW);

    assertThat(breaches()).isEqualTo(Map.of("staleAcks", 1L));
  }

  @Test
  void findsAClaimOfARowWhoseLeaseIsAlive() throws SQLException {
    claim(OTHER);

    assertThat(ledger.staleAcks()).isEqualTo(1);
  }

  @Test
  void findsTwoDeadLettersOfOneMessageAlsoInTablesThatWereDropped() throws SQLException {
    database.update("update committed set kind = 'POISON'");
    deadLetter(OWNER, ROW);
    assertThat(breaches()).isEmpty();

    schema.dropDeadLetters();
    schema.createDeadLetters();
    assertThat(breaches()).isEmpty();

    insertDeadLetter(ROW);
    assertThat(breaches()).isEqualTo(Map.of("deadLetteredTwice", 1L));
  }

  @Test
  void findsDeadLettersThatShouldNotBeAndMissesThoseThatShould() throws SQLException {
    deadLetter(OWNER, ROW);
    commit(2, 8, "POISON");
    effectOf(2, 8, OWNER, 1, 0);

    assertThat(breaches())
        .isEqualTo(Map.of("healthyDeadLettered", 1L, "poisonNotDeadLettered", 1L));
  }

  @Test
  void findsAnEffectBeforeTheMessageWasDue() throws SQLException {
    effect(OWNER, 1);
    ack(OWNER);
    database.update("update committed set due_at = now() + interval '2 s'");

    assertThat(breaches()).isEqualTo(Map.of("early", 1L));
  }

  @ParameterizedTest
  @CsvSource({"jump-clock, 0", "move-server, 1"})
  void onlyAJumpOfTheServersClockMakesAMessageDueBeforeItsTime(String episode, long expected)
      throws SQLException {
    effect(OWNER, 1);
    database.update("update committed set due_at = true_now() + interval '2 s'");
    database.update(
        "insert into episodes values (?, now() - interval '1 hour', now() + interval '1 hour')",
        episode);

    assertThat(ledger.early()).isEqualTo(expected);
  }

  @ParameterizedTest
  @CsvSource({"30, 0", "50, 1"})
  void aMessagePublishedDuringAJumpIsDueByTheClockOfThen(int dueAfterItsEnd, long expected)
      throws SQLException {
    effect(OWNER, 1);
    database.update(
        "insert into episodes values ('jump-clock', now() - interval '1 minute', now() - interval '1 s')");
    database.update(
        "update committed set due_at = now() - interval '1 s' + make_interval(secs => ?)",
        dueAfterItsEnd);

    assertThat(ledger.early()).isEqualTo(expected);
  }

  @Test
  void findsLeasesAndRetriesOfAWrongLength() throws SQLException {
    as(OWNER, "update outbox set lease_until = now() + interval '605 s'");
    as(
        OWNER,
        "update outbox set lease_until = null, attempts_count = 1, available_at = now() - interval '600 s'");

    assertThat(ledger.misdated(RETRY_DELAY)).isEqualTo(2);
  }

  @Test
  void keepsItsEyesAfterTheLeasesWereDroppedAndAdded() throws SQLException {
    schema.dropLeases();
    schema.addLeases();
    claim(OTHER);
    effect(OTHER, 2);
    assertThat(ledger.staleAcks()).isZero();

    renew(OWNER);
    assertThat(ledger.staleAcks()).isEqualTo(1);
    ack(OWNER);
    assertThat(ledger.staleAcks()).isEqualTo(2);
  }

  /**
   * Two effects of one message: when the first run wrote its one, in ms from the time of the fault,
   * what the server then had for the row (the ms its lease still lasted, and its token), when the
   * second run wrote its own, and what explains that.
   */
  @ParameterizedTest(name = "{0}")
  @CsvSource({
    // killed between effect and ack, handled again after the lease
    "killed, kill-subscriber, s0.1, -10, 5000, 1, 5200, KILL",
    "before its lease was over, kill-subscriber, s0.1, -10, 5000, 1, 4900, UNEXPLAINED",
    "another was killed, kill-subscriber, s9.9, -10, 5000, 1, 5200, UNEXPLAINED",
    "long before the kill, kill-subscriber, s0.1, -9000, 5000, 1, -3000, UNEXPLAINED",
    "no fault, , , -10, 5000, 1, 5200, UNEXPLAINED",
    "cut off, cut-network, , -10, 5000, 1, 5200, LEASE",
    // thawed in its handler, long after the row was another's: later by time, not by token
    "frozen, freeze-subscriber, s0.1, 900, , 2, 500, LEASE",
    "gone when it was thawed, freeze-subscriber, s0.1, 900, , , 500, LEASE",
    // given up by the framework while the handler ran
    "released meanwhile, cut-network, , 100, , 1, 5200, UNEXPLAINED",
    "leases were dropped, drop-column, , 100, , 1, 900, LEASE",
    "leases were dropped after, drop-column, , -10, 5000, 1, 900, LEASE",
    "the clock ran past its lease, jump-clock, , -10, 5000, 1, 900, LEASE",
    "the machine stood still, machine-stalled, , -10, 5000, 1, 5200, LEASE",
    "its pooler was silent, pooler-silent, s0.1, -10, 5000, 1, 5200, LEASE",
    "another's pooler was silent, pooler-silent, s9.9, -10, 5000, 1, 5200, UNEXPLAINED"
  })
  void explainsASecondEffectOnlyByAFaultThatHitTheFirstOnesProcess(
      String what,
      String fault,
      String victim,
      int firstAt,
      Integer leaseLeft,
      Integer rowToken,
      int secondAt,
      Reason reason)
      throws SQLException {
    database.update("truncate handled");
    insertEffect(OWNER, 1, firstAt, leaseLeft, rowToken);
    insertEffect(OTHER, 2, secondAt, 5000, 2);
    if (fault != null) {
      fault(fault, victim);
    }

    Duplicates duplicates = ledger.duplicates();

    assertThat(duplicates.count(reason)).as(what).isEqualTo(1);
    assertThat(duplicates.all()).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource({"terminate-connections, UNHEARD_EFFECT", ", UNEXPLAINED"})
  void explainsASecondEffectByAReportedFailureIfThereWasAFault(String fault, Reason reason)
      throws SQLException {
    insertEffect(OWNER, 1, 100, 5000, 1);
    insertEffect(OTHER, 2, 400, 5000, 2);
    database.update("insert into retried values (?, 1, interval '200 ms', false)", ROW);
    if (fault != null) {
      fault(fault, null);
    }

    assertThat(ledger.duplicates().count(reason)).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource({"-6000, LEASE", "2000, UNEXPLAINED"})
  void explainsASecondEffectByAFaultWhileTheFirstHandlerRan(int began, Reason reason)
      throws SQLException {
    insertEffect(OWNER, 1, 9_000, null, 2);
    insertEffect(OTHER, 2, 14_000, 5000, 2);
    database.update(
        "update handled set began = timestamptz '2030-01-01' + ? * interval '1 ms' where token = 1",
        began);
    fault("black-hole-network", null);

    assertThat(ledger.duplicates().count(reason)).isEqualTo(1);
  }

  @Test
  void neverExplainsASecondEffectUnderTheSameToken() throws SQLException {
    insertEffect(OWNER, 1, 100, 5000, 1);
    insertEffect(OWNER, 1, 6000, 5000, 1);
    fault("kill-subscriber", OWNER);

    assertThat(ledger.duplicates().count(Reason.UNEXPLAINED)).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource({
    "cut-network, , 1",
    "black-hole-network, , 0",
    "cut-network, black-hole-network, 0", // which of them it was cannot be told
    "cut-network, dead-pool, 1"
  })
  void findsASecondEffectAfterTheEndOfALeaseThatOnlyBriefFaultsHit(
      String fault, String other, long expected) throws SQLException {
    insertEffect(OWNER, 1, -10, 5000, 1);
    insertEffect(OTHER, 2, 5200, 5000, 2);
    fault(fault, null);
    if (other != null) {
      fault(other, null);
    }

    assertThat(ledger.duplicates().afterBriefFaults()).isEqualTo(expected);
    assertThat(ledger.duplicates().byFault()).containsEntry(fault, 1L);
  }

  /** Two hits of all four, and one of one process, each of which may hold 260 rows. */
  @Test
  void boundsSecondEffectsByTheRowsThatWhoWasHitMayHold() throws SQLException {
    insertEffect(OWNER, 1, -10, 5000, 1);
    insertEffect(OTHER, 2, 5200, 5000, 2);
    fault("black-hole-network", null);
    database.update(
        "insert into faults values ('black-hole-network', null, '2031-01-01', '2031-01-02')");
    fault("freeze-subscriber", OWNER);

    assertThat(ledger.duplicates().afterLease())
        .containsExactly(
            Map.entry("black-hole-network", new Bounded(1, 2 * 4 * 260)),
            Map.entry("freeze-subscriber", new Bounded(1, 260)));
    assertThat(ledger.duplicates().excesses()).isEmpty();
    assertThat(Duplicates.of(database.plain(), 4, 0).excesses())
        .containsExactly("black-hole-network: 1 of at most 0", "freeze-subscriber: 1 of at most 0");
  }

  @ParameterizedTest
  @CsvSource({
    "1400, , 0",
    "1700, , 1",
    "1700, cut-listen, 0",
    "1700, calm, 1" // no excuse
  })
  void findsAQuietMessageThatWasHandledLateThoughNothingWasDone(
      int millis, String episode, long expected) throws SQLException {
    commit(2, 8, "QUIET");
    database.update("update committed set due_at = '2030-01-01' where no = 2");
    effectOf(2, 8, OWNER, 1, 0);
    handledIn2030(2, millis);
    if (episode != null) {
      ledger.episode(episode, "2029-12-31 23:59:59", "2030-01-01 00:00:01");
    }

    assertThat(ledger.quietMessagesLate(Ledger.LATE)).isEqualTo(expected);
    assertThat(ledger.quietMessagesLate(Ledger.LATE.plusSeconds(1))).isZero();
    assertThat(ledger.quietMessages("2030-01-01", "2030-01-02")).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource({"9000, 0", "11000, 1"})
  void findsQuietMessagesThatWaitedLongerThanATime(int millis, long expected) throws SQLException {
    commit(2, 8, "QUIET");
    database.update("update committed set due_at = '2030-01-01' where no = 2");
    effectOf(2, 8, OWNER, 1, 0);
    handledIn2030(2, millis);

    assertThat(ledger.quietMessagesSlowerThan(TEN_SECONDS, "2030-01-01", "2030-01-02"))
        .isEqualTo(expected);
    assertThat(ledger.quietMessagesSlowerThan(TEN_SECONDS, "2030-01-02", "2030-01-03")).isZero();
  }

  @Test
  void tellsTheShareOfMessagesThatWereHandledMeanwhile() throws SQLException {
    commit(2, 8, "NORMAL");
    commit(3, 9, "POISON"); // never handled
    database.update("update committed set due_at = '2030-01-01'");
    effectOf(2, 8, OWNER, 1, 0);
    handledIn2030(2, 500);

    assertThat(ledger.shareHandled("2030-01-01", "2030-01-01 00:00:01")).isEqualTo(0.5);
    assertThat(ledger.shareHandled("2030-01-01", "2030-01-01 00:00:00.1")).isZero();
  }

  @Test
  void findsAnAcknowledgedTransactionThatTheServerHasNot(@TempDir Path directory)
      throws IOException, SQLException {
    try (Acknowledged.Writer file = Acknowledged.writer(Acknowledged.file(directory, 0, 1));
        Acknowledged.Writer other = Acknowledged.writer(Acknowledged.file(directory, 1, 2))) {
      file.add(1, 20);
      other.add(21, 3);
      Acknowledged acknowledged = Acknowledged.read(directory);

      assertThat(acknowledged.transactions()).isEqualTo(2);
      assertThat(acknowledged.messages()).isEqualTo(23);
      assertThat(acknowledged.gone(database.plain())).isEqualTo(1);
    }
  }

  @Test
  void aLineThatAKillCutOffIsNoAcknowledgement(@TempDir Path directory) throws IOException {
    Files.writeString(Acknowledged.file(directory, 0, 1), "20 7\n4 1");

    assertThat(Acknowledged.read(directory).messages()).isEqualTo(7);
  }

  @Test
  void findsAMessageThatWasHandledBeforeAnEarlierOneOfItsKey() throws SQLException {
    inOrder(11, 21, "k");
    inOrder(12, 22, "k");
    inOrder(13, 23, "other");
    effectInOrder(13, 23, 0, 10);
    effectInOrder(11, 21, 0, 10);
    effectInOrder(12, 22, 20, 30);
    effectInOrder(11, 21, 40, 50); // a repeat overtakes nobody
    assertThat(ledger.handledInOrder()).isEqualTo(3);
    assertThat(ledger.overtaken()).isZero();
    assertThat(ledger.repeatedInOrder()).isOne();

    inOrder(14, 24, "k");
    inOrder(15, 25, "k");
    effectInOrder(15, 25, 60, 70);
    effectInOrder(14, 24, 80, 90);
    assertThat(ledger.overtaken()).isOne();
  }

  @ParameterizedTest
  @CsvSource({"jump-clock, 14, 0", "jump-clock, 15, 1", "move-server, 14, 1"})
  void aMessagePublishedDuringAJumpLooksDelayedWhenTheClockIsSetBack(
      String episode, long publishedMeanwhile, long expected) throws SQLException {
    inOrder(14, 24, "k");
    inOrder(15, 25, "k");
    effectInOrder(15, 25, 60, 70);
    effectInOrder(14, 24, 80, 90);
    database.update(
        "update committed set due_at = timestamptz '2028-01-01' where no = ?", publishedMeanwhile);
    database.update(
        "insert into episodes values (?, timestamptz '2027-12-31', timestamptz '2028-01-02')",
        episode);

    assertThat(ledger.overtaken()).isEqualTo(expected);
  }

  @Test
  void findsAnAckThatCameBeforeThatOfAnEarlierMessageOfItsKey() throws SQLException {
    for (long no = 11; no <= 15; no++) {
      inOrder(no, no + 10, no == 15 ? "other" : "k");
      effectInOrder(no, no + 10, (int) no, (int) no);
    }
    deletedTogether(25);
    deletedTogether(21);
    deletedTogether(23, 22); // whichever comes first in a statement
    assertThat(ledger.acksOutOfTurn()).isZero();

    deletedTogether(24);
    inOrder(16, 26, "k");
    inOrder(17, 27, "k");
    effectInOrder(16, 26, 20, 20);
    effectInOrder(17, 27, 21, 21);
    deletedTogether(27);
    assertThat(ledger.acksOutOfTurn()).as("the other is there still").isZero();
    deletedTogether(26);
    assertThat(ledger.acksOutOfTurn()).isOne();
  }

  private void deletedTogether(long... rows) {
    for (long row : rows) {
      insertRow(row);
    }
    database.update(
        "delete from outbox where id in (%s)"
            .formatted(LongStream.of(rows).mapToObj(String::valueOf).collect(joining(","))));
  }

  @Test
  void aMessageWithADelayAndOneWithoutAKeyAreInNoOrder() throws SQLException {
    inOrder(11, 21, "k");
    inOrder(12, 22, "k");
    inOrder(13, 23, null);
    inOrder(14, 24, null);
    database.update("update committed set ordered = false where no = 11");
    for (long no : new long[] {14, 13, 12, 11}) {
      effectInOrder(no, no + 10, 0, 10);
    }
    assertThat(ledger.overtaken()).isZero();
  }

  @Test
  void findsASecondEffectOfATransactionWhateverWasDone() throws SQLException {
    database.update("update committed set kind = 'TRANSACTIONAL'");
    effect(OWNER, 1);
    ledger.hit("kill-subscriber", null, "2020-01-01Z", "2040-01-01Z");
    assertThat(ledger.repeatedTransactions()).isZero();

    effect(OTHER, 1);
    assertThat(ledger.repeatedTransactions()).isOne();
  }

  @ParameterizedTest
  @CsvSource({"2, 0", "3, 1", "1, -1"})
  void findsACounterThatDiffersFromTheMessagesThatCountItUp(long counted, long difference)
      throws SQLException {
    commit(2, 8, "TRANSACTIONAL");
    commit(3, 9, "CHAINED");
    database.update("update counters set counted = ? where slot = 3", counted);

    assertThat(ledger.miscounted()).isEqualTo(difference);
  }

  @Test
  void findsAChainThatBreaksOffAndOneThatForks() throws SQLException {
    link(1, null, "chaos");
    link(2, 1L, "chaos-more");
    assertThat(ledger.brokenChains()).as("the second has not been followed").isOne();
    assertThat(ledger.chains()).isZero();

    link(3, 2L, Subscriber.ORDERED_QUEUE);
    assertThat(ledger.brokenChains()).isZero();
    assertThat(ledger.chains()).isOne();

    link(4, 2L, Subscriber.ORDERED_QUEUE);
    assertThat(ledger.brokenChains()).as("the second was followed twice").isOne();
  }

  private void link(long no, @Nullable Long origin, String queue) {
    database.update("delete from committed where no = ?", no);
    database.update(
        "insert into committed (no, kind, outbox_id, due_at, queue, origin)"
            + " values (?, 'CHAINED', ? + 10, now(), ?, ?)",
        no,
        no,
        queue,
        origin);
  }

  @Test
  void knowsForWhomAHandlersTransactionAcks() throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.execute("set local application_name = '" + OWNER + "-effects'");
      statement.execute("set local %s = '%s'".formatted(LedgerSchema.WRITER, OWNER));
      statement.execute(
          "insert into handled (no, outbox_id, token, owner)"
              + " values (1, %d, 1, '%s')".formatted(ROW, OWNER));
      statement.execute("delete from outbox where id = " + ROW);
      connection.commit();
    }
    assertThat(breaches()).isEmpty();
  }

  @Test
  void findsAnEffectAfterTheMessageHadExpired() throws SQLException {
    database.update(
        "update committed set kind = 'EXPIRING', due_at = true_now() - interval '7 seconds'");
    effect(OWNER, 1);
    database.update("update handled set began = true_now() - interval '1500 ms'");
    assertThat(ledger.handledAfterExpiry(Duration.ZERO)).isZero();
    database.update("update handled set began = true_now()");
    assertThat(ledger.handledAfterExpiry(Duration.ZERO)).isOne();
    assertThat(ledger.handledAfterExpiry(Duration.ofSeconds(5))).isZero();

    ledger.episode(Fault.JUMP_CLOCK.label(), "2020-01-01Z", "2040-01-01Z");
    assertThat(ledger.handledAfterExpiry(Duration.ZERO)).as("by another clock").isZero();
  }

  @ParameterizedTest
  @CsvSource({"EXPIRING, expired, 0", "EXPIRING, retry_terminal, 1", "NORMAL, expired, 1"})
  void ofHealthyMessagesOnlyThoseThatExpireMayBeDeadLetters(
      String kind, String reason, long breaches) throws SQLException {
    database.update("update committed set kind = ?", kind);
    deadLetter(OWNER, ROW);
    database.update("update outbox_dlq set failure_reason = ?", reason);

    assertThat(ledger.healthyDeadLettered()).isEqualTo(breaches);
  }

  @Test
  void findsTwoMessagesOfAKeyThatWereHandledAtTheSameTime() throws SQLException {
    inOrder(11, 21, "k");
    inOrder(12, 22, "k");
    inOrder(13, 23, "other");
    effectInOrder(11, 21, 0, 10);
    effectInOrder(13, 23, 5, 15);
    effectInOrder(12, 22, 10, 20);
    assertThat(besideOneOfTheirKey()).isZero();

    inOrder(14, 24, "k");
    effectInOrder(14, 24, 15, 30);
    assertThat(besideOneOfTheirKey()).isOne();
    ledger.hit("freeze-subscriber", OWNER, "2030-01-01Z", "2030-01-02Z");
    ledger.hit("black-hole-network", null, "2030-01-01Z", "2030-01-02Z");
    assertThat(besideOneOfTheirKey()).as("in one process, whatever is done to it").isOne();
    ledger.hit("jump-clock", null, "2030-01-01Z", "2030-01-02Z");
    assertThat(besideOneOfTheirKey()).as("times do not compare").isZero();
  }

  @Test
  void findsTwoMessagesOfAKeyAtOnceThoughAnotherEndedBetweenTheirEnds() throws SQLException {
    for (int no = 11; no <= 13; no++) {
      inOrder(no, no + 10, "k");
    }
    effectInOrder(11, 21, 0, 100);
    effectInOrder(12, 22, 100, 100);
    effectInOrder(13, 23, 50, 110);

    assertThat(besideOneOfTheirKey()).isEqualTo(2);
  }

  @ParameterizedTest
  @CsvSource({
    "freeze-subscriber, s0.1, 0",
    "freeze-subscriber, s1.2, 0",
    "freeze-subscriber, s9.9, 1", // of another process
    "black-hole-network, , 0",
    "machine-stalled, , 0",
    "cut-network, , 1", // no lease runs out by it
    "dead-pool, , 1"
  })
  void anOwnerThatHangsMayGoOnBesideTheNext(String fault, @Nullable String victim, long expected)
      throws SQLException {
    inOrder(11, 21, "k");
    inOrder(12, 22, "k");
    effectInOrder(11, 21, 0, 20);
    effectInOrder(12, 22, 10, 30);
    database.update("update handled set owner = 's1.2' where no = 12");
    assertThat(besideOneOfTheirKey()).isOne();

    ledger.hit(fault, victim, "2029-12-31T23:59:50.5Z", "2029-12-31T23:59:51Z");
    assertThat(besideOneOfTheirKey()).isEqualTo(expected);
  }

  @Test
  void aFaultThatWasOverTwoLeasesBeforeIsNoReason() throws SQLException {
    inOrder(11, 21, "k");
    inOrder(12, 22, "k");
    effectInOrder(11, 21, 0, 20);
    effectInOrder(12, 22, 10, 30);
    database.update("update handled set owner = 's1.2' where no = 12");
    ledger.hit("black-hole-network", null, "2029-12-31T23:59:40Z", "2029-12-31T23:59:49Z");
    assertThat(besideOneOfTheirKey()).isOne();
  }

  @Test
  void aRunThatIsLateMayGoOnBesideTheNextOfItsOwnMessage() throws SQLException {
    inOrder(11, 21, "k");
    effectInOrder(11, 21, 0, 20);
    effectInOrder(11, 21, 10, 30);
    assertThat(besideOneOfTheirKey()).isOne();
    ledger.hit("lock-tables", null, "2030-01-01Z", "2030-01-02Z");
    assertThat(besideOneOfTheirKey()).isZero();
  }

  private long besideOneOfTheirKey() throws SQLException {
    return ledger.besideOneOfTheirKey(Duration.ofSeconds(5));
  }

  @Test
  void findsARepeatInOrderThatNoFaultExplains() throws SQLException {
    inOrder(11, 21, "k");
    effectInOrder(11, 21, 0, 10);
    effectInOrder(11, 21, 20, 30);
    assertThat(ledger.repeatedInOrderUnexplained()).isOne();
    assertThat(ledger.duplicates().all()).as("by leases of rows").isZero();
    ledger.hit("kill-subscriber", OWNER, "2030-01-01Z", "2030-01-02Z");
    assertThat(ledger.repeatedInOrderUnexplained()).isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "terminate-connections, s0.1, 1",
    "kill-subscriber, s9.9, 1", // of another process
    "kill-subscriber, s0.1, 0",
    "freeze-subscriber, s1.2, 0", // whose handler was overtaken by the first one here
    "black-hole-network, , 0",
    "machine-stalled, , 0"
  })
  void findsARepeatInOrderOfWhichOnlyBriefFaultsTell(
      String fault, @Nullable String victim, long expected) throws SQLException {
    repeatedInOrder(11, 21, 0);
    database.update(
        "update handled set owner = ? where nth = (select max(nth) from handled)", OTHER);
    assertThat(ledger.repeatsInOrder().ofBriefFaults()).as("it is unexplained").isZero();
    fault(Fault.CUT_NETWORK.label(), null);
    assertThat(ledger.repeatsInOrder().ofBriefFaults()).isOne();

    fault(fault, victim);
    assertThat(ledger.repeatsInOrder().ofBriefFaults()).isEqualTo(expected);

    database.update("insert into retried values (21, 0, interval '200 ms', false)");
    assertThat(ledger.repeatsInOrder().ofBriefFaults()).as("after a failure").isZero();
  }

  @Test
  void boundsTheRepeatsInOrderOfAFaultByWhatAProcessMayHaveRead() throws SQLException {
    for (int key = 0; key < 3; key++) {
      repeatedInOrder(11 + key, 21 + key, 100 * key);
    }
    fault(Fault.KILL_SUBSCRIBER.label(), OWNER);
    RepeatsInOrder few = RepeatsInOrder.of(database.plain(), 4, 2);
    assertThat(few.byFault()).containsExactly(Map.entry("kill-subscriber", new Bounded(3, 2)));
    assertThat(few.excesses()).containsExactly("kill-subscriber: 3 of at most 2");
    assertThat(RepeatsInOrder.of(database.plain(), 4, 3).excesses()).isEmpty();

    fault(Fault.LONG_CUT.label(), null);
    assertThat(RepeatsInOrder.of(database.plain(), 4, 3).byFault())
        .containsEntry("long-cut", new Bounded(3, 12));
  }

  private void repeatedInOrder(long no, long row, int millis) {
    inOrder(no, row, "k" + no);
    effectInOrder(no, row, millis, millis + 10);
    effectInOrder(no, row, millis + 20, millis + 30);
  }

  @Test
  void findsWritesByAnotherThanTheOwnerOfTheBucket() throws SQLException {
    effect(OWNER, 1);
    ack(OWNER);
    database.update(
        "insert into outbox (id, queue, ordering_key, payload) values (31, ?, 'k', '')",
        Subscriber.ORDERED_QUEUE);
    inOrder(11, 31, "k");
    database.update("update outbox_buckets set owner = '" + OWNER + "/x'");
    as(OWNER, "update outbox set attempts_count = attempts_count + 1 where id = 31");
    assertThat(ledger.staleAcks()).isZero();
    as(OTHER, "update outbox set attempts_count = attempts_count + 1 where id = 31");
    assertThat(ledger.staleAcks()).isOne();

    database.update(
        "insert into handled (no, outbox_id, token, row_token, owner, in_order) values (11, 31, 0, 0, ?, true)",
        OWNER);
    as(OWNER, "delete from outbox where id = 31");
    assertThat(ledger.staleAcks()).as("a deletion by the owner").isOne();
    database.update(
        "insert into outbox (id, queue, ordering_key, payload) values (31, ?, 'k', '')",
        Subscriber.ORDERED_QUEUE);
    as(OTHER, "delete from outbox where id = 31");
    assertThat(ledger.staleAcks()).as("a deletion by another").isEqualTo(2);
  }

  @ParameterizedTest
  @CsvSource({
    "-500, 0", // before the pause
    "900, 0", // within the second it takes until all have noticed
    "1100, 1",
    "9900, 1",
    "10100, 0" // after it
  })
  void findsAHandlerThatBeganInAPause(int began, long expected) throws SQLException {
    pausedForTenSeconds(began);

    assertThat(ledger.pauses()).isOne();
    assertThat(ledger.handledWhilePaused(Duration.ZERO)).isEqualTo(expected);
    assertThat(ledger.handledWhilePaused(Duration.ofSeconds(20))).as("slack").isZero();
    database.update("update committed set queue = 'chaos'");
    assertThat(ledger.handledWhilePaused(Duration.ZERO)).as("another queue").isZero();
  }

  @ParameterizedTest
  @CsvSource({
    "cut-network, -2000, 3000, 0", // all were well 3 s after the begin of the pause, and 1 s more
    "cut-network, 900, 3000, 0",
    "cut-network, 1100, 3000, 1", // by then all know of it
    "cut-network, -2000, -10, 1",
    "calm, -2000, 3000, 1"
  })
  void aPauseNeedsToBeHeededOnlyWhenItCanBeNoticed(String fault, int from, int to, long expected)
      throws SQLException {
    pausedForTenSeconds(3_900);
    ledger.episode(fault, in2030(from), in2030(to));
    assertThat(ledger.handledWhilePaused(Duration.ZERO)).isEqualTo(expected);

    database.update("update handled set began = began + interval '200 ms'");
    assertThat(ledger.handledWhilePaused(Duration.ZERO)).as("long after").isOne();
    fault(Pulse.FAULT, null);
    assertThat(ledger.handledWhilePaused(Duration.ZERO)).as("the machine stood still").isZero();
  }

  private void pausedForTenSeconds(int began) throws SQLException {
    effect(OWNER, 1);
    database.update("update committed set queue = ?", Subscriber.PAUSED_QUEUE);
    database.update("update handled set began = ?::timestamptz", in2030(began));
    ledger.paused(in2030(0), in2030(10_000));
  }

  private static String in2030(int millis) {
    return Instant.parse("2030-01-01T00:00:00Z").plusMillis(millis).toString();
  }

  @Test
  void countsHandlersOfTheLimitedQueueThatRanAtOnce() throws SQLException {
    inASlot(11, OWNER, 0, 100);
    inASlot(12, OTHER, 50, 150);
    inASlot(13, OTHER, 100, 200);
    assertThat(ledger.mostAtOnce()).isEqualTo(2);
    assertThat(ledger.mostAtOnceInTheirSlots(LEASE)).isEqualTo(2);

    inASlot(14, OWNER, 90, 110);
    assertThat(ledger.mostAtOnce()).isEqualTo(3);
    database.update("update committed set queue = 'chaos' where no = 14");
    assertThat(ledger.mostAtOnce()).as("another queue's is not limited").isEqualTo(2);
  }

  @ParameterizedTest
  @CsvSource({
    "lease_until = at - interval '1 ms'",
    "row_token = token + 1", // another claimed it
    "'lease_until = null, row_token = null'" // it is gone
  })
  void aHandlerWhoseLeaseWasLostHasNoSlot(String lost) throws SQLException {
    inASlot(11, OWNER, 0, 100);
    inASlot(12, OTHER, 50, 150);
    database.update("update handled set " + lost + " where no = 11");

    assertThat(ledger.mostAtOnce()).isOne();
  }

  @ParameterizedTest
  @CsvSource({
    "freeze-subscriber, s0.1, 1",
    "freeze-subscriber, s9.9, 2",
    "black-hole-network, , 1",
    "machine-stalled, , 1",
    "pooler-silent, s0.1, 1",
    "cut-network, , 2", // no lease that is renewed in time runs out by it
  })
  void aFaultThatLeasesMayRunOutByExplainsMoreAtOnce(String fault, String victim, long expected)
      throws SQLException {
    inASlot(11, OWNER, 5_000, 5_100);
    inASlot(12, OTHER, 5_050, 5_150);
    fault(fault, victim);
    if (victim == null) { // it hit one of both only
      database.update("update faults set owner = ?", OWNER);
    }
    assertThat(ledger.mostAtOnce()).isEqualTo(2);
    assertThat(ledger.mostAtOnceInTheirSlots(LEASE)).isEqualTo(expected);

    database.update(
        "update handled set began = began + interval '10 s', at = at + interval '10 s'");
    database.update("update handled set lease_until = at + interval '5 s'");
    assertThat(ledger.mostAtOnceInTheirSlots(LEASE)).as("two leases later").isEqualTo(2);
  }

  private void inASlot(long no, String owner, int began, int at) {
    database.update(
        "insert into committed (no, kind, outbox_id, due_at, queue)"
            + " values (?, 'NORMAL', ? + 10, timestamptz '2029-01-01', ?)",
        no,
        no,
        Subscriber.LIMITED_QUEUE);
    database.update(
        """
        insert into handled (no, outbox_id, token, row_token, owner, began, at, lease_until)
        values (?, ? + 10, 1, 1, ?, ?::timestamptz, ?::timestamptz, ?::timestamptz)""",
        no,
        no,
        owner,
        in2030(began),
        in2030(at),
        in2030(at + 4_000));
  }

  private void inOrder(long no, long row, @Nullable String key) {
    database.update(
        "insert into committed (no, kind, outbox_id, due_at, key, ordered)"
            + " values (?, 'NORMAL', ?, timestamptz '2029-01-01', ?, true)",
        no,
        row,
        key);
  }

  /** From when to when, in milliseconds from a fixed instant. */
  private void effectInOrder(long no, long row, int began, int at) {
    database.update(
        """
        insert into handled (no, outbox_id, token, row_token, owner, began, at, in_order)
        select ?, ?, 0, 0, ?, t + ? * interval '1 ms', t + ? * interval '1 ms', true
        from (select timestamptz '2030-01-01Z' as t) x""",
        no,
        row,
        OWNER,
        began,
        at);
  }

  private void handledIn2030(long no, int millis) {
    database.update(
        "update handled set at = timestamptz '2030-01-01' + ? * interval '1 ms' where no = ?",
        millis,
        no);
  }

  private Map<String, Long> breaches() throws SQLException {
    Map<String, Long> figures = new LinkedHashMap<>();
    figures.put("lost", ledger.lost());
    figures.put("handledAfterRollback", ledger.handledAfterRollback());
    figures.put("staleAcks", ledger.staleAcks());
    figures.put("poisonNotDeadLettered", ledger.poisonNotDeadLettered());
    figures.put("healthyDeadLettered", ledger.healthyDeadLettered());
    figures.put("deadLetteredTwice", ledger.deadLetteredTwice());
    figures.put("repeatedTransactions", ledger.repeatedTransactions());
    figures.put("handledAfterExpiry", ledger.handledAfterExpiry(Duration.ZERO));
    figures.put("early", ledger.early());
    figures.put("misdated", ledger.misdated(RETRY_DELAY));
    figures.values().removeIf(value -> value == 0);
    return figures;
  }

  private void commit(long no, long row, String kind) {
    database.update("insert into committed values (?, ?, ?, now())", no, kind, row);
  }

  private void insertRow(long id) {
    database.update("insert into outbox (id, queue, payload) values (?, 'chaos', '')", id);
  }

  private void claim(String owner) {
    as(
        owner,
        "update outbox set lease_until = now() + interval '5 s', lease_token = lease_token + 1,"
            + " leased_by = '%s/x/1'".formatted(owner));
  }

  private void renew(String owner) {
    as(owner, "update outbox set lease_until = now() + interval '5 s'");
  }

  private void ack(String owner) {
    as(owner, "delete from outbox");
  }

  private void deadLetter(String owner, long row) {
    insertDeadLetter(row);
    as(owner, "delete from outbox where id = " + row);
  }

  private void insertDeadLetter(long row) {
    database.update(
        """
        insert into outbox_dlq (outbox, original_id, lease_token, queue, payload, deliveries_count,
                                attempts_count, created_at, available_at, failure_reason)
        values ('public.outbox', ?, 1, 'chaos', '', 1, 1, now(), now(), 'retry_terminal')""",
        row);
  }

  private void effect(String owner, int token) {
    effectOf(1, ROW, owner, token, 0);
  }

  private void effectOf(long no, long row, String owner, int token, int millis) {
    database.update(
        "insert into handled (no, outbox_id, token, row_token, owner, lease_until, at) values"
            + " (?, ?, ?, ?, ?, now() + interval '5 s', clock_timestamp() + ? * interval '1 ms')",
        no,
        row,
        token,
        token,
        owner,
        millis);
  }

  /** Times are in milliseconds from a fixed instant. */
  private void insertEffect(String owner, int token, int at, Integer leaseLeft, Integer rowToken) {
    database.update(
        """
        insert into handled (no, outbox_id, token, row_token, owner, lease_until, at)
        select 1, ?, ?, ?, ?, at + ? * interval '1 ms', at
        from (select timestamptz '2030-01-01' + ? * interval '1 ms' as at) x""",
        ROW,
        token,
        rowToken,
        owner,
        leaseLeft,
        at);
  }

  /** From the fixed instant, for a second. */
  private void fault(String fault, String victim) throws SQLException {
    ledger.hit(fault, victim, "2030-01-01 00:00:00", "2030-01-01 00:00:01");
  }

  private void as(String application, String sql) {
    PGSimpleDataSource source = database.plain();
    source.setApplicationName(application);
    try {
      Database.update(source, sql);
    } catch (SQLException e) {
      throw new IllegalStateException(sql, e);
    }
  }
}
