package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.migrations.PollerMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What the proof of pollers is to find is planted; all times are seconds after an instant. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class PollerLedgerIT {
  private static final long EPOCH = 1_893_456_000; // 2030-01-01
  private static final String PLAIN = PollingNode.PLAIN.get(0);
  private static final String TRANSACTIONAL = PollingNode.TRANSACTIONAL.get(0);
  private static final Duration LIMIT = Duration.ofSeconds(4);

  private final TestDatabase database;
  private final PollerLedger ledger;

  PollerLedgerIT(TestDatabase database) throws SQLException {
    this.database = database;
    this.ledger = new PollerLedger(database.plain());
    if (database.one(String.class, "select to_regclass('written')::text") == null) {
      PollerMigrations.of("public", "outbox").migrate(database.plain());
      ledger.create();
    }
  }

  @BeforeEach
  void empty() {
    database.update(
        "truncate changes, written, handled, counted, handling, told, leases, moves, hits,"
            + " held_at_hit, long_writes, seen_delays, outbox_poller");
  }

  private void written(long id, int revision, long change, int at) {
    database.update(
        "insert into written values (?, ?, ?, to_timestamp(?))", id, revision, change, EPOCH + at);
  }

  private void handled(String poller, long id, int revision, String process, int at) {
    database.update(
        "insert into handled (poller, id, revision, process, token, at)"
            + " values (?, ?, ?, ?, 1, to_timestamp(?))",
        poller,
        id,
        revision,
        process,
        EPOCH + at);
  }

  /** With the move of the position in its transaction, or without. */
  private void counted(long id, long token, boolean moves) {
    database.update(
        "with moved as (insert into moves (poller, token, process, session)"
            + " select ?, ?, 'p0.1', 'poller 0123456789abcdef ' || ? || ' name' where ?)"
            + " insert into counted (poller, id, revision, process, token)"
            + " values (?, ?, 1, 'p0.1', ?)",
        TRANSACTIONAL,
        token,
        token,
        moves,
        TRANSACTIONAL,
        id,
        token);
  }

  private void hit(long no, String process, int at, int until) {
    database.update(
        "insert into hits values (?, ?, true, to_timestamp(?), to_timestamp(?))",
        no,
        process,
        EPOCH + at,
        EPOCH + until);
  }

  private void as(String session, String sql) throws SQLException {
    PGSimpleDataSource named = database.plain();
    named.setApplicationName(session);
    try (Connection connection = named.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  private void acquired(String process, long token) {
    database.update(
        "update outbox_poller set owner = ?, token = ?, lease_until = now() + interval '3 s'",
        process + "/1a2b",
        token);
  }

  private static String move(String cursor) {
    return "update outbox_poller set position_side = 'ROW', position_cursor = '%s'"
        .formatted(cursor);
  }

  @Test
  void whatTheServerDoesIsNoted() throws SQLException {
    database.update("insert into changes default values");
    database.update("update changes set revision = revision");
    as("w", "begin; insert into changes default values; rollback");
    long id = database.one(Long.class, "select id from changes");
    assertThat(ledger.written()).isEqualTo(2);
    assertThat(ledger.lost()).isEqualTo(4); // of each poller
    PollingNode.PLAIN.forEach(poller -> handled(poller, id, 2, "p0.1", 1));
    assertThat(ledger.lost()).isEqualTo(2);
    assertThat(ledger.handledAfterRollback()).isZero();

    database.update("insert into outbox_poller (application, name) values ('proof', ?)", PLAIN);
    acquired("p0.1", 1);
    assertThat(ledger.holder(false)).isEqualTo("p0.1");
    assertThat(ledger.holder(true)).isEmpty();
    assertThat(ledger.holds("p0.1", false)).isTrue();
    assertThat(ledger.holds("p0.1", true)).isFalse();
    assertThat(ledger.holds("p1.2", false)).isFalse();
    as("p0.1", move("1"));
    assertThat(ledger.lateCommits()).isZero();
    assertThat(ledger.hit(1, "p0.1", true)).isEqualTo(1);
    ledger.hitIsOver(1);
    assertThat(ledger.handoversTooLate(LIMIT)).isEqualTo(1);
    acquired("p1.2", 2);
    assertThat(ledger.handoversTooLate(LIMIT)).isZero();
    assertThat(ledger.longestHandover()).isLessThan(LIMIT);
  }

  @Test
  void aVersionThatWasNotHandledIsLostUnlessALaterOneWas() throws SQLException {
    written(1, 1, 10, 1);
    written(1, 2, 11, 2);
    for (String poller : PollingNode.PLAIN) {
      handled(poller, 1, 2, "p0.1", 3);
    }
    for (String poller : PollingNode.TRANSACTIONAL) {
      handled(poller, 1, 1, "p0.1", 3);
    }
    assertThat(ledger.lost()).isEqualTo(2);
  }

  @Test
  void whatIsHandledAfterARollbackIsFound() throws SQLException {
    written(1, 1, 10, 1);
    handled(PLAIN, 1, 1, "p0.1", 2);
    handled(PLAIN, 1, 2, "p0.1", 2);
    counted(2, 1, true);
    assertThat(ledger.handledAfterRollback()).isEqualTo(2);
  }

  @Test
  void commitsOutOfOrderAreCounted() throws SQLException {
    written(1, 1, 10, 1);
    written(2, 1, 12, 2);
    written(3, 1, 11, 3);
    assertThat(ledger.committedOutOfOrder()).isEqualTo(1);
  }

  @Test
  void aSecondDeliveryIsFoundUnlessOneOfBothProcessesWasHit() throws SQLException {
    for (int id = 1; id <= 4; id++) {
      handled(PLAIN, id, 1, "p0.1", 10);
      handled(PLAIN, id, 1, "p1.2", 20 + id);
    }
    assertThat(ledger.deliveredTwice()).isEqualTo(4);
    assertThat(ledger.deliveredTwiceWithoutFault()).isEqualTo(4);
    hit(1, "p2.3", 11, 12); // another process
    hit(2, "p0.1", 1, 4); // long before
    hit(3, "p0.1", 30, 31); // later
    assertThat(ledger.deliveredTwiceWithoutFault()).isEqualTo(4);
    hit(4, "p1.2", 23, 26); // before the last two
    assertThat(ledger.deliveredTwiceWithoutFault()).isEqualTo(2);
    hit(5, "p0.1", 11, 11);
    assertThat(ledger.deliveredTwiceWithoutFault()).isZero();
    handled(PollingNode.PLAIN.get(1), 1, 1, "p0.1", 10); // another poller
    assertThat(ledger.deliveredTwice()).isEqualTo(4);
  }

  @Test
  void aTransactionThatIsRepeatedIsFoundWhateverWasDone() throws SQLException {
    counted(1, 1, true);
    counted(2, 1, true);
    hit(1, "p0.1", 0, 1);
    assertThat(ledger.repeatedTransactions()).isZero();
    counted(1, 2, true);
    assertThat(ledger.repeatedTransactions()).isEqualTo(1);
  }

  @Test
  void whatIsCommittedByAnotherThanTheHolderIsFound() throws SQLException {
    database.update("insert into outbox_poller (application, name) values ('proof', ?)", PLAIN);
    acquired("p0.1", 1);
    acquired("p1.2", 2);
    as("p0.1", move("7"));
    assertThat(ledger.lateCommits()).isEqualTo(1);
    as("poller 0123456789abcdef 2 name", move("8"));
    assertThat(ledger.lateCommits()).isEqualTo(1);
    as("poller 0123456789abcdef 1 name", move("9"));
    assertThat(ledger.lateCommits()).isEqualTo(2);
  }

  @Test
  void effectsWithoutAMoveInTheirTransactionAreFound() throws SQLException {
    counted(1, 1, true);
    assertThat(ledger.lateCommits()).isZero();
    counted(2, 1, false);
    assertThat(ledger.lateCommits()).isEqualTo(1);
  }

  @Test
  void aLeaseThatIsTakenTooLateOrNeverIsFound() throws SQLException {
    hit(1, "p0.1", 10, 18);
    database.update(
        "insert into held_at_hit values (1, ?, 5, false), (1, ?, 9, true)", PLAIN, TRANSACTIONAL);
    assertThat(ledger.handoversTooLate(LIMIT)).isEqualTo(2);
    database.update(
        "insert into leases values (?, 6, 'p1.2', to_timestamp(?)), (?, 10, 'p1.2',"
            + " to_timestamp(?))",
        PLAIN,
        EPOCH + 14,
        TRANSACTIONAL,
        EPOCH + 15);
    assertThat(ledger.handoversTooLate(LIMIT)).isEqualTo(1);
    assertThat(ledger.longestHandover()).isEqualTo(Duration.ofSeconds(5));
  }

  @Test
  void whichHandlersRunIsNotedAtAHit() throws SQLException {
    database.update(
        "insert into outbox_poller (application, name, owner, token, lease_until) select 'proof', n,"
            + " 'p0.1/1a2b', 4, now() + interval '1 h' from unnest(array['a', 'b', 'c']) n");
    database.update(
        "insert into outbox_poller (application, name, owner, token, lease_until) select 'proof', n,"
            + " 'p1.2/1a2b', 4, now() + interval '1 h' from unnest(array['d', 'e', 'f']) n");
    database.update("insert into handling values ('a', 'p0.1', 4), ('b', 'p0.1', 3)");
    assertThat(ledger.holder(false)).isIn("p0.1", "p1.2");
    assertThat(ledger.holder(true)).isEqualTo("p0.1");
    assertThat(ledger.holds("p0.1", true)).isTrue();
    assertThat(ledger.holds("p1.2", true)).isFalse();
    assertThat(ledger.hit(1, "p0.1", true)).isEqualTo(3);
    assertThat(database.list(String.class, "select poller from held_at_hit where handling"))
        .containsExactly("a"); // that of b ran under an earlier lease
  }

  @Test
  void aFrozenHandlerThatIsReplacedAndNotToldIsFound() throws SQLException {
    hit(1, "p0.1", 10, 18);
    database.update("update hits set frozen = false where no = 1"); // it was killed
    hit(2, "p1.2", 20, 28);
    hit(3, "p2.3", 30, 38);
    hit(4, "p2.3", 40, 41); // at once again
    for (int no = 1; no <= 3; no++) {
      database.update(
          "insert into held_at_hit values (?, ?, ?, true), (?, ?, ?, false)",
          no,
          PLAIN,
          no * 10,
          no,
          TRANSACTIONAL,
          no * 10);
    }
    assertThat(ledger.handlersReplaced()).isZero(); // nobody has their leases
    taken(PLAIN, 11, 14);
    taken(PLAIN, 21, 24);
    taken(TRANSACTIONAL, 21, 24); // no handler ran
    assertThat(ledger.handlersReplaced()).isEqualTo(1);
    assertThat(ledger.replacedAndNotTold(LIMIT)).isEqualTo(1);
    told(TRANSACTIONAL, "p1.2", 28); // of another poller
    told(PLAIN, "p2.3", 28); // another process
    told(PLAIN, "p1.2", 19); // before that
    assertThat(ledger.replacedAndNotTold(LIMIT)).isEqualTo(1);
    told(PLAIN, "p1.2", 28);
    assertThat(ledger.replacedAndNotTold(LIMIT)).isZero();
    taken(PLAIN, 31, 34);
    assertThat(ledger.handlersReplaced()).isEqualTo(2);
    assertThat(ledger.replacedAndNotTold(LIMIT)).isZero();
    assertThat(ledger.replacedAndNotTold(Duration.ofSeconds(1))).isEqualTo(1);
  }

  private void taken(String poller, long token, int at) {
    database.update(
        "insert into leases values (?, ?, 'p3.4', to_timestamp(?))", poller, token, EPOCH + at);
  }

  private void told(String poller, String process, int at) {
    database.update("insert into told values (?, ?, to_timestamp(?))", poller, process, EPOCH + at);
  }

  @Test
  void sessionsUnderAnOldLeaseAreFound() throws SQLException {
    database.update(
        "insert into outbox_poller (application, name, token) values ('proof', 'a', 2)");
    PGSimpleDataSource named = database.plain();
    named.setApplicationName("poller 0123456789abcdef 2 a");
    try (Connection own = named.getConnection()) {
      assertThat(own.isValid(1)).isTrue();
      assertThat(ledger.sessionsLeft()).isZero();
      database.update("update outbox_poller set token = 3");
      assertThat(ledger.sessionsLeft()).isEqualTo(1);
    }
  }

  @Test
  void aDelayThatAPollerDoesNotShowIsFound() throws SQLException {
    ledger.longWriteBegins(1, Duration.ofSeconds(60));
    assertThat(ledger.delaysNotVisible()).isZero(); // it has not ended
    ledger.longWriteEnds(1);
    assertThat(ledger.longWrites()).isEqualTo(1);
    assertThat(ledger.delaysNotVisible()).isEqualTo(4);
    ledger.seesDelay(1, PLAIN);
    ledger.seesDelay(1, PLAIN);
    ledger.seesDelay(2, TRANSACTIONAL);
    assertThat(ledger.delaysNotVisible()).isEqualTo(3);
  }
}
