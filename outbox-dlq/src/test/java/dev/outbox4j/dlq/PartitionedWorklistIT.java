package dev.outbox4j.dlq;

import static dev.outbox4j.dlq.DeadLetterFilter.any;
import static dev.outbox4j.dlq.DeadLetterFilter.failedBefore;
import static dev.outbox4j.dlq.DeadLetterFilter.ids;
import static dev.outbox4j.dlq.DeadLetterFilter.messageId;
import static dev.outbox4j.dlq.DeadLetterFilter.orderingKey;
import static dev.outbox4j.dlq.DeadLetterFilter.queue;
import static dev.outbox4j.dlq.DeadLetterFilter.unresolved;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.FailureReason;
import dev.outbox4j.migrations.PartitionInterval;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.OpenDeadLetters;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What the worklist and the writer do on partitions. */
@ExtendWith(PostgresExtension.class)
class PartitionedWorklistIT {
  private static final int LETTERS = 5_000;

  private final TestDatabase database;
  private final Partitions partitions;
  private final Letters letters;
  private int marks;

  PartitionedWorklistIT(TestDatabase database) {
    this.database = database;
    this.partitions = new Partitions(database);
    this.letters = new Letters(database);
  }

  @BeforeEach
  void months() {
    partitions.by(PartitionInterval.MONTH);
    for (int month = 1; month <= 10; month++) {
      partitions.month(month);
    }
    partitions.retention(database.plain()).build().run();
  }

  private DeadLetterWorklist worklist() {
    return letters.worklist;
  }

  private String partitionOf(long id) {
    return database.one(
        String.class, "select tableoid::regclass::text from outbox_dlq where id = " + id);
  }

  @Test
  void aLetterWhoseMessageFailsAgainIsTheSameOneInAnotherPartition() {
    partitions.unresolved(3, 1, 3);
    assertThat(partitionOf(2)).isEqualTo("outbox_dlq_p20200301");
    assertThat(worklist().where(ids(2)).redrive(Letters.by("ann")).done()).isEqualTo(1);

    letters.fail(1_002, FailureReason.REJECTED, "again");

    assertThat(database.count("outbox_dlq")).isEqualTo(3);
    assertThat(partitionOf(2))
        .isNotEqualTo("outbox_dlq_p20200301")
        .isNotEqualTo("outbox_dlq_default");
    assertThat(worklist().find(2).orElseThrow().summary().redrives()).isEqualTo(1);
    assertThat(worklist().history(2)).hasSize(1);
    assertThat(worklist().history(2).get(0).outcome())
        .isEqualTo(DeadLetterTrip.Outcome.FAILED_AGAIN);
    assertThat(worklist().where(queue("orders")).page(1).letters().get(0).id()).isEqualTo(2);
  }

  /** The letter is in another partition before the one who waits for it can go on. */
  @Test
  void aLetterThatMovesMeanwhileIsPassedByAndStopsNoOther() throws Exception {
    partitions.unresolved(3, 1, 5);
    try (Connection other = database.plain().getConnection();
        Statement move = other.createStatement()) {
      other.setAutoCommit(false);
      move.execute("update outbox_dlq set failed_at = now() where id = 3");

      DeadLetterReport report = worklist().where(unresolved()).discard("ann", "x");

      assertThat(report.done()).isEqualTo(4);
      assertThat(report.passedBy()).isEqualTo(1);
      other.commit();
    }
    assertThat(worklist().where(unresolved()).discard("ann", "x").done()).isEqualTo(1);
  }

  @Test
  void putsBackDiscardsAndPurgesAcrossPartitions() {
    for (int month = 1; month <= 10; month++) {
      partitions.unresolved(month, month * 10, month * 10 + 4);
    }
    Instant june = Instant.parse("2020-06-01T00:00:00Z");

    assertThat(worklist().where(queue("orders")).count(100)).isEqualTo(50);
    assertThat(worklist().where(failedBefore(june)).redrive(Letters.by("ann")).done())
        .isEqualTo(25);
    assertThat(database.count("outbox")).isEqualTo(25);
    assertThat(worklist().where(queue("orders")).discard("ann", "x").done()).isEqualTo(25);
    database.update("delete from outbox where mod(id, 5) > 1"); // handled
    assertThat(worklist().where(any()).purge("ann").done()).isEqualTo(25 + 15);
    assertThat(database.count("outbox_dlq")).isEqualTo(database.count("outbox"));
  }

  @Test
  void pagesGoThroughAllPartitionsInOrder() {
    for (int month = 1; month <= 10; month++) {
      partitions.unresolved(month, month * 10, month * 10 + 4);
    }
    DeadLetterSelection all = worklist().where(queue("orders"));
    List<Long> seen = new ArrayList<>();
    DeadLetterPage page = all.page(7);
    while (true) {
      page.letters().forEach(letter -> seen.add(letter.id()));
      if (page.next().isEmpty()) {
        break;
      }
      page = all.page(7, page.next().get());
    }

    List<Long> expected =
        database.list(Long.class, "select id from outbox_dlq order by failed_at desc, id desc");
    assertThat(seen).isEqualTo(expected).hasSize(50);
  }

  /** So many partitions are not for nothing, of whatever time a letter is. */
  @Test
  void aMoveLocksEachPartitionWithItsSixIndexes() {
    partitions.script(
        """
        create table locked (relations bigint);
        create function locks() returns trigger language plpgsql as $$ begin
          insert into locked select count(distinct l.relation)
          from pg_locks l join pg_class c on c.oid = l.relation
          where l.pid = pg_backend_pid() and starts_with(c.relname, 'outbox_dlq_p20200301');
          return old; end $$;
        create trigger locks before delete on outbox for each row execute function locks();
        """);
    try {
      long id = new Rows(database, "outbox").lease("orders");
      Letters.TABLE
          .bind(PostgresOutbox.on(database.plain(), database.table()).store())
          .write(List.of(Rows.entry("orders", id)));

      assertThat(partitionOf(1)).isNotEqualTo("outbox_dlq_p20200301");
      assertThat(database.list(Long.class, "select relations from locked")).containsExactly(7L);
    } finally {
      partitions.script("drop trigger locks on outbox; drop function locks(); drop table locked");
    }
  }

  @Test
  @Tag("plans")
  void readsFewPagesOfEachPartition() throws Exception {
    for (int month = 1; month <= 10; month++) {
      partitions.unresolved(month, month * LETTERS, (month + 1) * LETTERS - 1);
    }
    partitions.script(
        "update outbox_dlq set ordering_key = 'key-' || mod(id, 1000) where failed_at < '2020-04-01Z'");
    for (String partition : partitions.names()) {
      partitions.script("vacuum analyze " + partition);
    }

    reads(
        1_500, () -> assertThat(worklist().where(queue("orders")).page(50).letters()).hasSize(50));
    reads(1_500, () -> assertThat(worklist().where(unresolved()).page(50).letters()).hasSize(50));
    reads(200, () -> assertThat(worklist().where(queue("none")).count(10)).isZero());
    reads(200, () -> assertThat(worklist().where(messageId(26_007)).page(1).letters()).hasSize(1));
    reads(200, () -> assertThat(worklist().find(25_007)).isPresent());
    reads(
        1_000,
        () ->
            assertThat(
                    worklist().where(queue("orders").and(orderingKey("key-7"))).page(10).letters())
                .hasSize(10));
    reads(
        1_500,
        () ->
            assertThat(worklist().where(ids(25_007)).redrive(Letters.by("ann")).done())
                .isEqualTo(1));
    reads(1_500, () -> letters.fail(26_007, FailureReason.REJECTED, "again"));
    reads(
        500,
        () -> {
          OpenDeadLetters open =
              Letters.TABLE
                  .bind(PostgresOutbox.on(database.plain(), database.table()).store())
                  .open()
                  .orElseThrow();
          assertThat(open.among("orders", Set.of("key-7", "none"))).containsExactly("key-7");
        });
    partitions.script("update outbox_dlq set resolved_at = now() where failed_at > '2020-02-01Z'");
    for (String partition : partitions.names()) {
      partitions.script("vacuum analyze " + partition);
    }
    reads(1_500, () -> assertThat(worklist().where(unresolved()).page(9).letters()).hasSize(9));
  }

  private void reads(long most, Runnable work) throws Exception {
    String scans = scans();
    long before = pages();
    work.run();
    assertThat(pages() - before).isLessThan(most);
    assertThat(scans()).isEqualTo(scans);
  }

  private long pages() throws Exception {
    return statistic(
        Long.class,
        "select sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0))::bigint"
            + " from pg_statio_user_tables where relname like 'outbox\\_dlq%'");
  }

  /** Of each partition, so that a failure says which one was read. */
  private String scans() throws Exception {
    return statistic(
        String.class,
        "select string_agg(relname || ' ' || seq_scan, ', ' order by relname)"
            + " from pg_stat_user_tables where relname like 'outbox\\_dlq\\_p%'");
  }

  /**
   * Sessions that have ended have reported all they did; so what is counted has its own. What they
   * reported is counted in turn, by an older server some time later: so also a mark that comes
   * behind it.
   */
  private <T> T statistic(Class<T> type, String sql) throws Exception {
    await()
        .until(
            () ->
                database.one(
                        Long.class,
                        "select count(*) from pg_stat_activity where datname = current_database()"
                            + " and pid <> pg_backend_pid() and backend_type = 'client backend'")
                    == 0);
    if (marks == 0) {
      execute("drop table if exists mark");
      execute("create table mark (n int)");
    }
    execute("insert into mark values (1)");
    marks++;
    await()
        .until(
            () ->
                ask(
                        Long.class,
                        "select coalesce(max(n_tup_ins), 0) from pg_stat_user_tables"
                            + " where relname = 'mark'")
                    == marks);
    return ask(type, sql);
  }

  /** In a session that ends. */
  private void execute(String sql) throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  private <T> T ask(Class<T> type, String sql) throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(sql)) {
      row.next();
      return row.getObject(1, type);
    }
  }
}
