package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.migrations.PartitionInterval;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterWriter;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** A run that is cut off anywhere, or that others are in the way of. */
@ExtendWith(PostgresExtension.class)
class RetentionFaultsIT {
  private final TestDatabase database;
  private final Partitions partitions;
  private final Rows rows;

  RetentionFaultsIT(TestDatabase database) {
    this.database = database;
    this.partitions = new Partitions(database);
    this.rows = new Rows(database, "outbox");
  }

  @BeforeEach
  void anOldPartition() {
    partitions.by(PartitionInterval.MONTH);
    partitions.month(3);
    partitions.resolved(3, 1, 5);
    partitions.redriven();
    partitions.closed("outbox_dlq_p20200301");
    partitions.month(4);
    partitions.resolved(4, 6, 8);
    partitions.unresolved(4, 9, 9);
    partitions.month(5);
    partitions.resolved(5, 10, 10);
    partitions.resolved(11, 11, 700); // in the default partition
  }

  private DeadLetterRetention retention() {
    return partitions.retention(database.plain()).build();
  }

  private void letItDie() {
    database.update("update outbox_dlq_audit set seen_at = now() - interval '6 minutes'");
  }

  private void allIsDone() {
    assertThat(partitions.names())
        .hasSize(7)
        .contains("outbox_dlq_p20200401", "outbox_dlq_p20200501", "outbox_dlq_default")
        .doesNotContain("outbox_dlq_p20200301");
    assertThat(database.list(Long.class, "select id from outbox_dlq order by id"))
        .containsExactly(9L, 10L);
    assertThat(
            database.one(
                Long.class,
                "select count(*) from outbox_dlq_audit where action = 'drop partition'"
                    + " and status = 'completed'"))
        .isEqualTo(1);
    assertThat(database.count("outbox_dlq_trips")).isZero();
    assertThat(partitions.faults()).isEmpty();
  }

  @Test
  void goesOnAfterAProcessThatDiedBeforeAnyOfItsStatements() {
    int statements = 0;
    boolean cut = true;
    while (cut) {
      anOldPartition();
      CountingDataSource dying = new CountingDataSource(database.plain());
      AtomicInteger left = new AtomicInteger(statements);
      AtomicBoolean died = new AtomicBoolean();
      dying.beforeEach(
          text -> {
            if (left.getAndDecrement() <= 0) {
              died.set(true);
              throw new Killed();
            }
          });
      try {
        partitions.retention(dying).build().run();
      } catch (Killed e) {
        assertThat(died).isTrue();
      }
      cut = died.get();
      letItDie();
      assertThat(retention().run()).isPresent();
      allIsDone();
      statements++;
    }
    assertThat(statements).isGreaterThan(10);
  }

  private static final class Killed extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  @Test
  void goesOnAfterAStatementWhoseAnswerWasLost() {
    for (String what : List.of("drop table", "attach partition")) {
      anOldPartition();
      CountingDataSource losing = new CountingDataSource(database.plain());
      AtomicBoolean done = new AtomicBoolean();
      losing.beforeEach(
          text -> {
            if (text.contains(what) && done.compareAndSet(false, true)) {
              // it is done, and the client never hears of it
              partitions.script(text.replace("?", "'retention'"));
              throw new Killed();
            }
          });
      assertThatThrownBy(() -> partitions.retention(losing).build().run())
          .isInstanceOf(Killed.class);
      letItDie();
      retention().run();
      allIsDone();
    }
  }

  // ---- what is locked

  /** A letter is written as fast as its own lock timeout of 100 ms demands, or the move fails. */
  @Test
  void writersDoNotWaitBehindARunThatWaitsForALongReader() throws Exception {
    database.update("comment on table outbox_dlq_p20200301 is null");
    retention().run(); // so that there is a partition of now
    partitions.closed("outbox_dlq_p20200301");
    try (Connection reader = partitions.transaction("select count(*) from outbox_dlq")) {
      AtomicBoolean running = new AtomicBoolean(true);
      AtomicInteger written = new AtomicInteger();
      AtomicInteger late = new AtomicInteger();
      ExecutorService threads = Executors.newSingleThreadExecutor();
      Future<?> writing =
          threads.submit(
              () -> {
                DeadLetterWriter writer =
                    Letters.TABLE.bind(
                        PostgresOutbox.on(database.plain(), database.table()).store());
                while (running.get()) {
                  write(writer, rows.lease("orders"), written, late);
                }
                return null;
              });
      await().until(() -> written.get() > 0);
      DeadLetterRetentionReport whole =
          partitions
              .retention(database.plain())
              .patience(new Patience(5, Duration.ofMillis(100)))
              .build()
              .run()
              .orElseThrow();
      running.set(false);
      writing.get();
      threads.shutdown();

      assertThat(written.get())
          .isGreaterThan(late.get() * 20); // those of a machine that stood still
      assertThat(whole.postponed()).contains("outbox_dlq_p20200301");
      assertThat(whole.dropped()).isEmpty();
      assertThat(partitions.names()).contains("outbox_dlq_p20200301");
      reader.rollback();
    }

    DeadLetterRetention later = retention();
    assertThat(later.run().orElseThrow().dropped()).containsExactly("outbox_dlq_p20200301");
    assertThat(later.health().healthy()).isTrue();
  }

  private static void write(
      DeadLetterWriter writer, long id, AtomicInteger written, AtomicInteger late) {
    try {
      assertThat(writer.write(List.of(Rows.entry("orders", id))).done()).containsExactly(id);
      written.incrementAndGet();
    } catch (OutboxStoreException e) {
      assertThat(e.fault()).isEqualTo(Fault.TIMEOUT);
      late.incrementAndGet();
    }
  }

  @Test
  void whoReadsAPartitionByItselfPostponesIt() throws Exception {
    try (Connection reader = partitions.transaction("select count(*) from outbox_dlq_p20200301")) {
      assertThat(retention().run().orElseThrow().postponed()).contains("outbox_dlq_p20200301");
      assertThat(database.count("outbox_dlq_trips")).as("histories of its letters").isEqualTo(5);
      reader.rollback();
    }
    assertThat(retention().run().orElseThrow().dropped()).containsExactly("outbox_dlq_p20200301");
  }

  @Test
  void aSlowTriggerDoesNotKeepWritersOut() {
    database.update(
        "create or replace function slow() returns trigger language plpgsql as $$ begin"
            + " if new.action = 'drop partition' then perform pg_sleep(60); end if; return new; end $$");
    database.update(
        "create trigger slow before insert on outbox_dlq_audit for each row execute function slow()");

    DeadLetterRetentionReport report = retention().run().orElseThrow();

    assertThat(report.ended()).containsExactly("outbox_dlq_p20200301");
    assertThat(report.postponed()).isEmpty();
    assertThat(partitions.names()).contains("outbox_dlq_p20200301");
  }

  @Test
  void twoThatRunAtOnceDropAPartitionOnce() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      DeadLetterRetention one = retention();
      List<Future<Boolean>> runs =
          threads.invokeAll(
              Collections.nCopies(
                  8,
                  () -> {
                    try {
                      return one.run().isPresent();
                    } catch (OutboxStoreException e) {
                      throw new AssertionError(e);
                    }
                  }));
      assertThat(runs.stream().filter(RetentionFaultsIT::ran)).isNotEmpty();
    } finally {
      threads.shutdown();
    }
    allIsDone();
  }

  private static boolean ran(Future<Boolean> run) {
    try {
      return run.get();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  /** As after another server has taken over, whose clock is behind. */
  @Test
  void aDeadRunWhoseClockWasAheadStopsNoOther() {
    anOldPartition();
    CountingDataSource dying = new CountingDataSource(database.plain());
    AtomicBoolean died = new AtomicBoolean();
    dying.beforeEach(
        text -> {
          if (died.get() || text.contains("pg_inherits")) {
            died.set(true);
            throw new Killed();
          }
        });
    assertThatThrownBy(() -> partitions.retention(dying).build().run()).isInstanceOf(Killed.class);
    assertThat(retention().run()).as("one runs").isEmpty();
    database.update("update outbox_dlq_audit set seen_at = now() + interval '1 hour'");

    assertThat(retention().run()).isPresent();
    allIsDone();
  }

  /** Such as those of a program that puts letters back one by one. */
  @Test
  void aRunIsAloneHoweverManyActionsBeganAfterIt() {
    CountingDataSource busy = new CountingDataSource(database.plain());
    AtomicBoolean looked = new AtomicBoolean();
    List<Object> others = new ArrayList<>();
    busy.beforeEach(
        text -> {
          if (text.contains("pg_inherits") && looked.compareAndSet(false, true)) {
            database.update(
                "insert into outbox_dlq_audit (outbox, action, acted_by, filter, status, ended_at)"
                    + " select 'public.outbox', 'redrive', 'a program', 'ids', 'completed', now()"
                    + " from generate_series(1, 10000)");
            others.add(retention().run());
          }
        });

    assertThat(partitions.retention(busy).build().run()).isPresent();

    assertThat(others).containsExactly(Optional.empty());
  }

  /** It was taken for dead, and goes on beside its successor. */
  @Test
  void aFrozenRunThatComesBackDoesNoHarm() {
    CountingDataSource freezing = new CountingDataSource(database.plain());
    AtomicBoolean frozen = new AtomicBoolean();
    freezing.beforeEach(
        text -> {
          if (text.contains("drop table") && frozen.compareAndSet(false, true)) {
            letItDie();
            assertThat(retention().run().orElseThrow().dropped())
                .containsExactly("outbox_dlq_p20200301");
          }
        });

    DeadLetterRetentionReport report = partitions.retention(freezing).build().run().orElseThrow();

    assertThat(report.dropped()).isEmpty();
    allIsDone();
  }

  @Test
  void aPartitionThatCannotBeDroppedStopsNoOther() {
    partitions.closed("outbox_dlq_p20200501");
    database.update("create view of_march as select id from outbox_dlq_p20200301");
    try {
      assertThatThrownBy(() -> retention().run())
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("2BP01");
      assertThat(partitions.names())
          .contains("outbox_dlq_p20200301")
          .doesNotContain("outbox_dlq_p20200501");
      assertThat(database.count("outbox_dlq_default")).isZero();
    } finally {
      database.update("drop view of_march");
    }
    assertThat(retention().run().orElseThrow().dropped()).containsExactly("outbox_dlq_p20200301");
  }

  /** What is left of a dead process is known by the entry of its drop in the audit. */
  @Test
  void historiesThatAProcessLeftThatDiedAreDeletedByTheNextRun() {
    CountingDataSource dying = new CountingDataSource(database.plain());
    dying.beforeEach(
        text -> {
          if (text.contains("outbox_dlq_trips")) {
            throw new Killed();
          }
        });
    assertThatThrownBy(() -> partitions.retention(dying).build().run()).isInstanceOf(Killed.class);
    assertThat(partitions.names()).doesNotContain("outbox_dlq_p20200301");
    assertThat(database.count("outbox_dlq_trips")).isEqualTo(5);
    letItDie();

    assertThat(retention().run().orElseThrow().dropped()).isEmpty();

    allIsDone();
  }

  @Test
  void historiesThatWereLeftAreDeletedFromATableThatIsPlainMeanwhile() {
    partitions.plain();
    partitions.resolved(3, 1, 2);
    partitions.redriven();
    database.update("update outbox_dlq set resolved_at = now()");
    database.update("delete from outbox_dlq where id = 1");
    database.update(
        "insert into outbox_dlq_audit (outbox, action, acted_by, filter) values"
            + " ('public.outbox', 'drop partition', 'another process', '')");

    retention().run();

    assertThat(database.list(Long.class, "select dead_letter from outbox_dlq_trips"))
        .containsExactly(2L);
  }

  /** Since somebody's table has its name. */
  @Test
  void aPartitionThatCannotBeCreatedStopsNoDrop() {
    database.update("create table outbox_dlq_kept as select 1 as kept");
    String coming =
        database.one(
            String.class,
            "select 'outbox_dlq_p' || to_char(date_trunc('month', now() at time zone 'UTC')"
                + " + interval '1 month', 'YYYYMMDD')");
    database.update("alter table outbox_dlq_kept rename to " + coming);
    try {
      assertThatThrownBy(() -> retention().run())
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("has rows, and is no partition");

      assertThat(partitions.names())
          .hasSize(6) // two coming ones beside that of now
          .doesNotContain("outbox_dlq_p20200301");
      assertThat(database.count("outbox_dlq_default")).isZero();
      assertThat(database.count("outbox_dlq_trips")).isZero();
    } finally {
      database.update("drop table " + coming);
    }
    assertThat(retention().run().orElseThrow().created()).containsExactly(coming);
  }

  // ---- the constraint that keeps the server from reading a large default partition

  private void aLargeDefaultPartition() {
    partitions.by(PartitionInterval.DAY);
    partitions.unresolved(3, 1, 20_000);
  }

  /** Nobody looks for days, and letters come of the time that was said to have none. */
  @Test
  void noLetterIsRefusedAfterAProcessThatDiedWhileItCreatedAPartition() {
    aLargeDefaultPartition();
    CountingDataSource dying = new CountingDataSource(database.plain());
    AtomicBoolean died = new AtomicBoolean();
    dying.beforeEach(
        text -> {
          if (died.get() || text.contains("validate constraint")) {
            died.set(true);
            throw new Killed();
          }
        });
    assertThatThrownBy(() -> partitions.retention(dying).build().run()).isInstanceOf(Killed.class);
    assertThat(partitions.constraints()).containsExactly(false);

    partitions.later("3 days");
    partitions.letter("now() + interval '1 day'");
    partitions.letter("now() + interval '2 days'");

    assertThat(database.count("outbox_dlq_default where original_id = 77")).isEqualTo(2);
    letItDie();
    retention().run();
    assertThat(partitions.constraints()).isEmpty();
    assertThat(partitions.faults()).isEmpty();
  }

  /** Which takes as long as a large partition takes to be read. */
  @Test
  void aRunIsAloneWhileItsPartitionIsValidated() {
    aLargeDefaultPartition();
    CountingDataSource slow = new CountingDataSource(database.plain());
    List<Object> others = new ArrayList<>();
    slow.beforeEach(
        text -> {
          if (text.contains("validate constraint")) {
            others.add(retention().run());
            database.update(
                "update outbox_dlq_audit set seen_at = seen_at - interval '29 minutes'");
            others.add(retention().run());
          }
        });

    assertThat(partitions.retention(slow).build().run().orElseThrow().created())
        .hasSize(others.size() / 2)
        .isNotEmpty();

    assertThat(others).containsOnly(Optional.empty());
    assertThat(
            database.one(
                Boolean.class, "select max(seen_at) <= clock_timestamp() from outbox_dlq_audit"))
        .as("no sign is left that is of a time to come")
        .isTrue();
  }

  /** As by a socket timeout that is shorter than the server reads. */
  @Test
  void whoLosesItsConnectionsInValidationsDropsWhatIsOld() {
    anOldPartition();
    partitions.unresolved(11, 1_000, 21_000); // the default partition is large
    PGSimpleDataSource own = database.plain();
    own.setApplicationName("the retention");
    CountingDataSource losing = new CountingDataSource(own);
    losing.beforeEach(
        text -> {
          if (text.contains("validate constraint")) {
            database.list(
                Boolean.class,
                "select pg_terminate_backend(pid) from pg_stat_activity"
                    + " where application_name = 'the retention'");
          }
        });

    DeadLetterRetentionReport report = partitions.retention(losing).build().run().orElseThrow();

    assertThat(report.ended()).isNotEmpty();
    assertThat(report.dropped()).containsExactly("outbox_dlq_p20200301");
    assertThat(partitions.constraints()).isEmpty();
  }

  /**
   * As by a socket timeout, or PgBouncer's query_timeout, that is shorter than the server reads:
   * the server does not notice, and goes on to validate, with its lock on the default partition,
   * which the drop of any partition needs.
   */
  @Test
  void aValidationThatTheServerGoesOnWithKeepsNoOldPartition() throws Exception {
    anOldPartition();
    partitions.unresolved(11, 1_000, 21_000); // the default partition is large
    PGSimpleDataSource own = database.plain();
    own.setApplicationName("the retention");
    CountingDataSource losing = new CountingDataSource(own);
    List<Connection> goesOn = new ArrayList<>();
    losing.beforeEach(
        text -> {
          if (text.contains("validate constraint")) {
            try {
              goesOn.add(
                  partitions.transaction(
                      "alter table outbox_dlq_default validate constraint outbox_dlq_until"));
            } catch (SQLException e) {
              throw new IllegalStateException(e);
            }
            database.list(
                Boolean.class,
                "select pg_terminate_backend(pid) from pg_stat_activity"
                    + " where application_name = 'the retention'");
          }
        });
    try {
      DeadLetterRetentionReport report = partitions.retention(losing).build().run().orElseThrow();

      assertThat(goesOn).hasSize(1);
      assertThat(report.ended()).isNotEmpty();
      assertThat(report.dropped()).containsExactly("outbox_dlq_p20200301");
    } finally {
      for (Connection each : goesOn) {
        each.close();
      }
    }
    retention().run();
    assertThat(partitions.constraints()).isEmpty();
  }

  /** Also where functions are not for everybody. */
  @Test
  void whoWritesMayCallTheFunctionOfTheConstraint() {
    aLargeDefaultPartition();
    partitions.script(
        "alter default privileges revoke execute on functions from public; create role dlq_writer;"
            + " grant insert on outbox_dlq to dlq_writer");
    try {
      CountingDataSource beside = new CountingDataSource(database.plain());
      AtomicInteger written = new AtomicInteger();
      beside.beforeEach(
          text -> {
            if (text.contains("validate constraint")) {
              partitions.script("set role dlq_writer; " + Partitions.letterSql("now()"));
              written.incrementAndGet();
            }
          });

      assertThat(partitions.retention(beside).build().run().orElseThrow().created())
          .hasSize(written.get())
          .isNotEmpty();
    } finally {
      partitions.script(
          "alter default privileges grant execute on functions to public; drop owned by dlq_writer;"
              + " drop role dlq_writer");
    }
    assertThat(partitions.faults()).isEmpty();
  }

  /** As a pool has it, which gives no connection to a thread that is interrupted. */
  @Test
  void whoIsStoppedWhileItCreatesAPartitionLeavesNoConstraint() {
    aLargeDefaultPartition();
    CountingDataSource pool = new CountingDataSource(database.plain());
    pool.beforeEach(
        text -> {
          if (text.contains("validate constraint")) {
            Thread.currentThread().interrupt();
          }
          if (Thread.currentThread().isInterrupted()) {
            throw new Killed();
          }
        });

    Throwable thrown = catchThrowable(() -> partitions.retention(pool).build().run());

    assertThat(Thread.interrupted()).isTrue();
    assertThat(thrown).isInstanceOf(Killed.class);
    assertThat(partitions.constraints()).isEmpty();
    assertThat(partitions.faults()).isEmpty();
  }

  /** As {@code vacuum full} has it, for hours. */
  @Test
  void aPartitionThatIsLockedStopsNoOther() throws Exception {
    partitions.closed("outbox_dlq_p20200501");
    try (Connection stranger =
        partitions.transaction("lock table outbox_dlq_p20200301 in access exclusive mode")) {
      DeadLetterRetentionReport report = retention().run().orElseThrow();

      assertThat(report.postponed()).contains("outbox_dlq_p20200301");
      assertThat(report.dropped()).containsExactly("outbox_dlq_p20200501");
      stranger.rollback();
    }
    assertThat(database.count("outbox_dlq_default")).isZero();
  }

  /** As {@code vacuum full} has it for hours, in which each process looks every five minutes. */
  @Test
  void aLookAtADefaultPartitionThatIsLockedLeavesNoServerProcessThatWaits() throws Exception {
    try (Connection stranger =
        partitions.transaction("lock table outbox_dlq_default in access exclusive mode")) {
      Throwable failure = catchThrowable(() -> retention().run());

      assertThat(partitions.waiting()).isZero();
      assertThat(failure)
          .isInstanceOfSatisfying(
              OutboxStoreException.class, e -> assertThat(e.fault()).isEqualTo(Fault.TIMEOUT));
      stranger.rollback();
    }
    assertThat(retention().run()).isPresent();
    allIsDone();
  }

  /** As somebody has it who changes the table, and forgets to commit. */
  @Test
  void aRunBesideATableThatIsLockedEndsAndLeavesNoServerProcessThatWaits() throws Exception {
    try (Connection stranger =
        partitions.transaction("lock table outbox_dlq in access exclusive mode")) {
      Throwable failure = catchThrowable(() -> retention().run());

      assertThat(partitions.waiting()).isZero();
      assertThat(failure)
          .isInstanceOfSatisfying(
              OutboxStoreException.class, e -> assertThat(e.fault()).isEqualTo(Fault.TIMEOUT));
      stranger.rollback();
    }
    assertThat(retention().run()).isPresent();
    allIsDone();
  }

  /** Such as an autovacuum that gives pages at the end of the table back. */
  @Test
  void aLookIsTriedAgainWhileSomebodyHasTheDefaultPartition() throws Exception {
    CountingDataSource counted = new CountingDataSource(database.plain());
    try (Connection stranger =
        partitions.transaction("lock table outbox_dlq_default in access exclusive mode")) {
      counted.beforeEach(
          text -> {
            if (counted.executionsOf("pg_inherits") >= 2) {
              commit(stranger);
            }
          });

      assertThat(partitions.retention(counted).build().run()).isPresent();
    }
    allIsDone();
  }

  private static void commit(Connection connection) {
    try {
      connection.commit();
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  /** It would take as long for another coming time, and keep the run from what is old for hours. */
  @Test
  void whatTakesTooLongToBeValidatedIsTriedOnceInARun() {
    anOldPartition();
    partitions.unresolved(11, 1_000, 21_000); // the default partition is large
    partitions.script(
        """
        create function takes_long() returns event_trigger language plpgsql as $$ begin
          if current_query() like '%validate constraint%' then
            raise exception 'as by the limit' using errcode = '57014';
          end if; end $$;
        create event trigger takes_long on ddl_command_end execute function takes_long();
        """);
    try {
      CountingDataSource counted = new CountingDataSource(database.plain());

      DeadLetterRetentionReport report = partitions.retention(counted).build().run().orElseThrow();

      assertThat(counted.executionsOf("validate constraint")).isEqualTo(1);
      assertThat(report.ended()).hasSizeBetween(2, 3); // that of now is not tried
      assertThat(report.created()).isEmpty();
      assertThat(report.dropped()).containsExactly("outbox_dlq_p20200301");
    } finally {
      database.update("drop event trigger takes_long");
      database.update("drop function takes_long()");
    }
    assertThat(partitions.constraints()).isEmpty();
  }

  /** Its letters are to be kept by whoever has detached it. */
  @Test
  void aPartitionThatWasDetachedMeanwhileIsKept() {
    CountingDataSource slow = new CountingDataSource(database.plain());
    AtomicBoolean detached = new AtomicBoolean();
    slow.beforeEach(
        text -> {
          if (text.contains("drop table") && detached.compareAndSet(false, true)) {
            database.update("alter table outbox_dlq detach partition outbox_dlq_p20200301");
          }
        });

    DeadLetterRetentionReport report = partitions.retention(slow).build().run().orElseThrow();

    assertThat(report.dropped()).isEmpty();
    assertThat(database.count("outbox_dlq_p20200301")).isEqualTo(5);
    database.update("drop table outbox_dlq_p20200301");
  }

  /** The letter comes between the two of them, in the transaction of a writer. */
  @Test
  void twoThatCreateAPartitionAtOnceLoseNoLetterOfIt() throws Exception {
    String name = "\"public\".\"outbox_dlq_p20301001\"";
    PartitionSql sql =
        new PartitionSql(
            "\"outbox_dlq\"", "\"outbox\"", "\"outbox_dlq_trips\"", "\"outbox_dlq_audit\"", "u");
    partitions.script(sql.create(name));
    ExecutorService threads = Executors.newSingleThreadExecutor();
    try (Connection writer = database.plain().getConnection();
        Connection one = database.plain().getConnection();
        Statement writes = writer.createStatement();
        Statement attaches = one.createStatement()) {
      writer.setAutoCommit(false);
      writes.execute(
          "lock table only outbox_dlq in row exclusive mode"); // as whoever writes has it
      one.setAutoCommit(false);
      attaches.execute(
          "alter table outbox_dlq attach partition "
              + name
              + " for values from ('2030-10-01Z') to ('2030-11-01Z')");
      String patient = sql.create(name).replace("'100ms'", "'60s'"); // however busy the machine is
      Future<?> other = threads.submit(() -> partitions.script(patient));
      await().until(() -> partitions.waiting() > 0);
      one.commit();
      await().until(() -> partitions.waiting() == 0);
      writes.execute(
          "insert into outbox_dlq (outbox, original_id, lease_token, queue, payload,"
              + " deliveries_count, attempts_count, created_at, available_at, failed_at,"
              + " failure_reason) values ('public.outbox', 77, 1, 'orders', 'x', 1, 1, now(), now(),"
              + " '2030-10-02Z', 'rejected')");
      writer.commit();
      other.get();
    } finally {
      threads.shutdown();
    }
    assertThat(database.count("outbox_dlq where original_id = 77")).isEqualTo(1);
  }
}
