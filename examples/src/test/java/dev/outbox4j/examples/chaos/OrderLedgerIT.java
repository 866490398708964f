package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.OrderedMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.SQLException;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** What the proof of order is to find is planted; all times are milliseconds after an instant. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class OrderLedgerIT {
  private static final String OWNER = "p0.1";
  private static final String OTHER = "p1.2";
  private static final Duration RETRY_DELAY = Duration.ofMillis(200);

  private final TestDatabase database;
  private final Ledger ledger;
  private final OrderLedger order;

  OrderLedgerIT(TestDatabase database) throws SQLException {
    this.database = database;
    this.ledger = new Ledger(database.plain());
    this.order = new OrderLedger(database.plain());
    if (database.one(String.class, "select to_regclass('failed')::text") == null) {
      OrderedMigrations.of("public", "outbox", Subscriber.ORDERED_QUEUE).migrate(database.plain());
      new LedgerSchema(database.plain(), Duration.ofSeconds(5)).create();
      order.create();
    }
  }

  @BeforeEach
  void threeMessagesOfAKeyAndOneOfAnother() {
    database.update("truncate committed, handled, failed, faults, orphaned");
    for (long no = 1; no <= 4; no++) {
      database.update(
          "insert into committed (no, kind, outbox_id, due_at, key, ordered)"
              + " values (?, 'NORMAL', ? + 100, timestamptz '2030-01-01Z', ?, true)",
          no,
          no,
          no == 4 ? "other" : "k");
    }
  }

  @Test
  void runsThatFollowEachOtherAreInTurnFailuresIncluded() throws SQLException {
    effect(1, OWNER, 0, 10);
    effect(4, OTHER, 5, 15);
    failure(2, OWNER, 10, 20);
    failure(2, OTHER, 220, 230);
    effect(2, OWNER, 430, 440);
    effect(3, OTHER, 440, 450);

    assertThat(order.outOfTurn()).isZero();
    assertThat(order.besideAnother()).isZero();
    assertThat(order.repeated()).isZero();
    assertThat(order.keys()).isEqualTo(2);
    assertThat(order.failedRuns()).isEqualTo(2);
  }

  @Test
  void findsARunOfALaterMessageWhileAnEarlierOneIsToBeRetried() throws SQLException {
    effect(1, OWNER, 0, 10);
    failure(2, OWNER, 10, 20);
    effect(3, OWNER, 20, 30);
    assertThat(order.outOfTurn()).isOne();

    effect(2, OWNER, 220, 230);
    assertThat(order.outOfTurn()).isEqualTo(2);
    assertThat(ledger.overtaken()).isOne();
  }

  @Test
  void findsAGap() throws SQLException {
    effect(1, OWNER, 0, 10);
    effect(3, OWNER, 10, 20);

    assertThat(order.outOfTurn()).isOne();
    assertThat(ledger.lost()).as("2 and 4").isEqualTo(2);
  }

  @Test
  void findsAKeyThatDoesNotBeginWithItsFirstMessage() throws SQLException {
    effect(2, OWNER, 0, 10);

    assertThat(order.outOfTurn()).isOne();
  }

  @Test
  void aMessageComesAgainOnlyAfterAKillOfTheOwnerOfTheRunBeforeIt() throws SQLException {
    effect(1, OWNER, 0, 10);
    effect(2, OWNER, 10, 20);
    effect(1, OTHER, 6_000, 6_010);
    effect(2, OTHER, 6_010, 6_020);
    effect(3, OTHER, 6_020, 6_030);
    assertThat(order.repeated()).isEqualTo(2);
    assertThat(order.outOfTurn()).as("nobody was killed").isOne();

    ledger.hit("kill-subscriber", OTHER, at(900), at(901));
    assertThat(order.outOfTurn()).as("another was killed").isOne();
    ledger.hit("kill-subscriber", OWNER, at(7_000), at(7_001));
    assertThat(order.outOfTurn()).as("it was killed later").isOne();
    ledger.hit("kill-subscriber", OWNER, at(900), at(901));
    assertThat(order.outOfTurn()).isZero();
  }

  @Test
  void aKillIsNoReasonToLeaveAMessageOut() throws SQLException {
    effect(1, OWNER, 0, 10);
    ledger.hit("kill-subscriber", OWNER, at(900), at(901));
    effect(3, OTHER, 6_000, 6_010);

    assertThat(order.outOfTurn()).isOne();
  }

  @Test
  void findsTwoOfAKeyAtOnceAlsoWhenOneFails() throws SQLException {
    effect(2, OTHER, 5, 20);
    effect(4, OWNER, 5, 20);
    effect(1, OWNER, 20, 30);
    assertThat(order.besideAnother()).isZero();

    failure(3, OWNER, 29, 40);
    assertThat(order.besideAnother()).isOne();
  }

  @Test
  void findsTwoOfAKeyAtOnceThoughAnotherEndedBetweenTheirEnds() throws SQLException {
    effect(1, OWNER, 0, 100);
    effect(2, OWNER, 100, 100);
    effect(3, OWNER, 50, 110);

    assertThat(order.besideAnother()).isOne();
  }

  @Test
  void aKeyStandsStillFromItsLastRunUntilTheNext() throws SQLException {
    effect(1, OWNER, 300, 310);
    effect(4, OWNER, 700, 710);
    assertThat(standstill()).as("since it was published").isEqualTo(700);

    effect(2, OWNER, 2_310, 2_320);
    assertThat(standstill()).isEqualTo(2_000);
    assertThat(order.standstillsLongerThan(Duration.ofMillis(1_999), RETRY_DELAY)).isOne();
    assertThat(order.standstillsLongerThan(Duration.ofMillis(2_001), RETRY_DELAY)).isZero();
  }

  @Test
  void aKeyWhoseNextMessageIsNotYetThereStandsNotStill() throws SQLException {
    effect(1, OWNER, 300, 310);
    database.update("update committed set due_at = ?::timestamptz where no = 2", at(9_000));
    effect(2, OWNER, 9_400, 9_410);

    assertThat(standstill()).isEqualTo(400);
  }

  @Test
  void aKeyThatWaitsForARetryStandsStillOnlyWhenThatIsDue() throws SQLException {
    effect(1, OWNER, 0, 10);
    failure(2, OWNER, 10, 20);
    effect(2, OWNER, 1_220, 1_230);

    assertThat(standstill()).isEqualTo(1_000);
  }

  @Test
  void ofTwoOwnersThatAreKilledInARowEachIsWaitedFor() throws SQLException {
    effect(1, OWNER, 0, 10);
    effect(2, OWNER, 11_010, 11_020);
    assertThat(standstill()).isEqualTo(11_000);

    orphaned("other", 5_010);
    assertThat(standstill()).as("another key's owner was killed").isEqualTo(11_000);
    orphaned("k", 5_010);
    assertThat(standstill()).isEqualTo(6_000);
    orphaned("k", 12_000);
    assertThat(standstill()).as("a later kill is none of its reasons").isEqualTo(6_000);
  }

  @Test
  void notesTheBucketsOfAProcessThatWasKilled() throws SQLException {
    database.update("update outbox_buckets set owner = null");
    database.update("update outbox_buckets set owner = 'p0.1/x' where bucket < 3");
    database.update("update outbox_buckets set owner = 'p0.12/x' where bucket = 3");

    assertThat(order.orphan(OWNER)).isEqualTo(3);
    assertThat(database.list(Long.class, "select bucket from orphaned order by bucket"))
        .containsExactly(0L, 1L, 2L);
  }

  @Test
  void loadsWhatProcessesHaveWrittenInTheOrderOfItsEnds(@TempDir Path directory)
      throws IOException, SQLException {
    try (RunLog one = RunLog.of(directory, OWNER);
        RunLog other = RunLog.of(directory, OTHER)) {
      one.done(new RunLog.Run(1, 101, 0, 1_000, 2_000));
      one.failed(new RunLog.Run(2, 102, 0, 2_000, 3_000));
      one.done(new RunLog.Run(3, 103, 0, 5_000, 6_000));
      other.done(new RunLog.Run(2, 102, 0, 4_000, 5_000));
    }
    Path cut = directory.resolve(OWNER + RunLog.DONE);
    Files.write(cut, new byte[7], StandardOpenOption.APPEND); // a kill cut it off

    assertThat(RunLog.count(directory, RunLog.DONE)).isEqualTo(3);
    order.load(directory);

    assertThat(order.outOfTurn()).isZero();
    assertThat(
            database.list(
                String.class,
                """
                select no || ' by ' || owner || ' until ' || (extract(epoch from at) * 1000000)::bigint
                from (select no, owner, at, nth from handled
                  union all select no, owner, at, nth from failed) x order by nth"""))
        .containsExactly(
            "1 by p0.1 until 2000",
            "2 by p0.1 until 3000",
            "2 by p1.2 until 5000",
            "3 by p0.1 until 6000");
  }

  private long standstill() throws SQLException {
    return order.longestStandstill(RETRY_DELAY).toMillis();
  }

  private void orphaned(String key, int millis) {
    database.update(
        "insert into orphaned values (hashtextextended(?, 0) & 63, ?::timestamptz)",
        key,
        at(millis));
  }

  private void effect(long no, String owner, int began, int ended) {
    database.update(
        "insert into handled (no, outbox_id, token, owner, began, at, in_order)"
            + " values (?, ? + 100, 0, ?, ?::timestamptz, ?::timestamptz, true)",
        no,
        no,
        owner,
        at(began),
        at(ended));
  }

  private void failure(long no, String owner, int began, int ended) {
    database.update(
        "insert into failed (no, owner, began, at, nth) values"
            + " (?, ?, ?::timestamptz, ?::timestamptz, nextval('handled_nth_seq'))",
        no,
        owner,
        at(began),
        at(ended));
  }

  private static String at(int millis) {
    return "2030-01-01 00:00:%02d.%03dZ".formatted(millis / 1_000, millis % 1_000);
  }
}
