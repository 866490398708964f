package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PartitionInterval;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.ServerCounters;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What a run creates, deletes, drops and leaves. */
@ExtendWith(PostgresExtension.class)
class RetentionIT {
  private static final Duration YEAR = Duration.ofDays(365);

  private final TestDatabase database;
  private final Partitions partitions;
  private final DeadLetterRetention retention;

  RetentionIT(TestDatabase database) {
    this.database = database;
    this.partitions = new Partitions(database);
    this.retention = partitions.retention(database.plain()).build();
  }

  @BeforeEach
  void byDay() {
    partitions.by(PartitionInterval.DAY);
  }

  private DeadLetterRetentionReport run() {
    return retention.run().orElseThrow();
  }

  private List<Long> ids() {
    return database.list(Long.class, "select id from outbox_dlq order by id");
  }

  private List<String> audit(String action) {
    return database.list(
        String.class,
        "select acted_by || ' ' || status || ' ' || done_count || ' ' || filter from"
            + " outbox_dlq_audit where action = ? order by id",
        action);
  }

  private LocalDate today() {
    return database.one(LocalDate.class, "select (now() at time zone 'UTC')::date");
  }

  private static String name(LocalDate day) {
    return "outbox_dlq_p" + day.format(DateTimeFormatter.BASIC_ISO_DATE);
  }

  // ---- coming partitions

  @Test
  void createsThePartitionOfNowAndTheComingOnes() {
    DeadLetterRetentionReport report = run();

    LocalDate first =
        LocalDate.parse(
            report.created().get(0).substring("outbox_dlq_p".length()),
            DateTimeFormatter.BASIC_ISO_DATE);
    assertThat(first).isBetween(today().minusDays(1), today());
    assertThat(partitions.names())
        .containsExactly(
            "outbox_dlq_default",
            name(first),
            name(first.plusDays(1)),
            name(first.plusDays(2)),
            name(first.plusDays(3)));
    assertThat(report.created()).hasSize(4);
    // the database has another time zone
    assertThat(
            database.one(
                Boolean.class,
                "select pg_get_expr(relpartbound, oid) = format('FOR VALUES FROM (%L) TO (%L)',"
                    + " timestamptz '%sZ', timestamptz '%sZ') from pg_class where relname = '%s'"
                        .formatted(first, first.plusDays(1), name(first))))
        .isTrue();
    assertThat(partitions.faults()).isEmpty();
    assertThat(report.problems()).isEmpty();
    assertThat(run().created()).as("by another run").isEmpty();
  }

  @Test
  void goesOnWhereThePartitionOfTheTimeBeforeEnds() {
    partitions.plain();
    partitions.script(Partitions.PLAIN.partitionedBy(PartitionInterval.DAY).partitionSql());

    assertThat(run().created()).hasSize(2);
    assertThat(partitions.names()).contains("outbox_dlq_first", "outbox_dlq_default");
    assertThat(partitions.faults()).isEmpty();
  }

  /** Or letters would come to the default partition before the next run. */
  @Test
  void createsAsManyAsItTakesUntilTheNextRun() {
    DeadLetterRetentionReport report =
        partitions
            .retention(database.plain())
            .every(Duration.ofDays(7))
            .partitionsAhead(1)
            .build()
            .run()
            .orElseThrow();

    assertThat(report.created()).hasSizeBetween(9, 10);
  }

  @Test
  void aNewPartitionHasTheStorageParametersOfTheDefaultOne() {
    database.update(
        "alter table outbox_dlq_default set (autovacuum_vacuum_scale_factor = 0.01, fillfactor = 90)");

    run();

    assertThat(
            database.list(
                String.class,
                "select distinct c.reloptions::text from pg_inherits i join pg_class c on c.oid ="
                    + " i.inhrelid where i.inhparent = 'outbox_dlq'::regclass"))
        .containsExactly("{autovacuum_vacuum_scale_factor=0.01,fillfactor=90}");
  }

  @Test
  void fillsTheTimeUpToTheNextPeriodWhenTheIntervalIsAnother() {
    run();
    database.update("comment on table outbox_dlq is 'outbox4j schema 1, partitioned by month'");

    run();

    assertThat(
            database.one(
                Long.class,
                "select count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid, pg_class d"
                    + " where i.inhparent = 'outbox_dlq'::regclass and d.relname = '"
                    + name(today().plusDays(3))
                    + "' and split_part(pg_get_expr(c.relpartbound, c.oid), '''', 2)"
                    + " = split_part(pg_get_expr(d.relpartbound, d.oid), '''', 4)"))
        .as("a partition that begins where the last day ends")
        .isEqualTo(1);
    assertThat(partitions.faults()).isEmpty();
  }

  @Test
  void saysThatTheIntervalIsMissing() {
    database.update("comment on table outbox_dlq is 'outbox4j schema 1'");

    assertThatThrownBy(retention::run)
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("add 'partitioned by month', week or day to it");
    assertThat(retention.health().healthy()).isFalse();
    assertThat(audit("retention")).hasSize(1).first().asString().startsWith("retention failed");
  }

  // ---- the default partition

  @Test
  void tellsWhatTheDefaultPartitionHasCaught() {
    run();
    database.update(
        "insert into outbox_dlq (outbox, original_id, lease_token, queue, payload, deliveries_count,"
            + " attempts_count, created_at, available_at, failed_at, failure_reason) values"
            + " ('public.outbox', 1, 1, 'orders', 'x', 1, 1, now(), now(), now() + interval '2 years',"
            + " 'rejected')");

    DeadLetterRetentionReport report = run();

    assertThat(report.caught()).isEqualTo(1);
    assertThat(retention.health().healthy()).isFalse();
    assertThat(retention.health().problems())
        .containsExactly(
            "Letters in the default partition, since there was no other one for them: 1");
    assertThat(report.created()).isEmpty();
  }

  @Test
  void deletesWhatIsDueInTheDefaultPartition() {
    partitions.resolved(3, 1, 3);
    partitions.unresolved(3, 4, 5);

    DeadLetterRetentionReport report = run();

    assertThat(report.deleted()).isEqualTo(3);
    assertThat(report.caught()).isEqualTo(2);
    assertThat(ids()).containsExactly(4L, 5L);
  }

  @Test
  void doesNotCreateWhatTheDefaultPartitionHasLettersOf() {
    database.update(
        "insert into outbox_dlq (outbox, original_id, lease_token, queue, payload, deliveries_count,"
            + " attempts_count, created_at, available_at, failed_at, failure_reason) values"
            + " ('public.outbox', 1, 1, 'orders', 'x', 1, 1, now(), now(), now(), 'rejected')");

    DeadLetterRetentionReport report = run();

    assertThat(report.created()).hasSize(3);
    assertThat(report.caught()).isEqualTo(1);
    assertThat(database.count("outbox_dlq")).isEqualTo(1);
  }

  @Test
  void createsComingPartitionsBesideALargeDefaultOne() throws SQLException {
    partitions.unresolved(3, 1, 20_000);
    DeadLetterRetentionReport report;
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq_default")) {
      ServerCounters.Reads start = counters.reads();
      report = partitions.retention(counters.session()).build().run().orElseThrow();
      assertThat(counters.reads().sequentialScans() - start.sequentialScans())
          .as("beside the writers, and not once more while they wait")
          .isEqualTo(report.created().size());
    }

    // those of now, and of the coming two hours, cannot be excluded from it
    assertThat(report.created()).hasSizeBetween(2, 3);
    assertThat(report.caught()).isEqualTo(10_000);
    assertThat(partitions.faults()).as("a constraint that is left").isEmpty();
  }

  @Test
  void takesTheTableThatADeadProcessHasCreatedOnly() {
    String tomorrow = name(today().plusDays(1));
    database.update("create table " + tomorrow + " (id int)");

    assertThat(run().created()).hasSize(4).contains(tomorrow);
    assertThat(partitions.faults()).isEmpty();
  }

  @Test
  void leavesATableWithRowsThatHasTheNameOfAPartition() {
    String tomorrow = name(today().plusDays(1));
    database.update("create table " + tomorrow + " as select 1 as kept");

    assertThatThrownBy(retention::run).hasMessageContaining("has rows, and is no partition");
    assertThat(database.count(tomorrow)).isEqualTo(1);
    database.update("drop table " + tomorrow);
  }

  @Test
  void removesTheConstraintThatADeadProcessHasLeft() {
    database.update(
        "alter table outbox_dlq_default add constraint outbox_dlq_until check (failed_at < '2026-01-01Z')");
    assertThat(partitions.faults()).hasSize(1);

    run();

    assertThat(partitions.faults()).isEmpty();
  }

  // ---- old partitions

  @Test
  void dropsAPartitionThatHasHadNoUnresolvedLetterForLong() {
    String march = partitions.month(3);
    partitions.resolved(3, 1, 10);
    partitions.month(4);
    partitions.resolved(4, 11, 12);
    database.update(
        "insert into outbox_dlq_trips (dead_letter, number, redriven_by, failed_at, failure_reason,"
            + " deliveries_count, attempts_count, created_at) select id, 1, 'ann', failed_at, 'x', 1, 1,"
            + " created_at from outbox_dlq where id in (3, 10, 11)");

    assertThat(run().dropped()).as("which it only now knows").isEmpty();
    assertThat(ids()).hasSize(12);
    partitions.closed(march);
    DeadLetterRetentionReport report = run();

    assertThat(report.dropped()).containsExactly(march);
    assertThat(report.deleted()).isZero();
    assertThat(ids()).containsExactly(11L, 12L);
    assertThat(database.list(Long.class, "select dead_letter from outbox_dlq_trips"))
        .containsExactly(11L);
    assertThat(audit("drop partition"))
        .hasSize(1)
        .first()
        .asString()
        .startsWith("retention completed ")
        .endsWith(
            "partition outbox_dlq_p20200301, letters that failed from 2020-03-01T00:00:00Z before"
                + " 2020-04-01T00:00:00Z; the count is the server's estimate");
    assertThat(partitions.faults()).isEmpty();
  }

  @Test
  void keepsAPartitionThatHasUnresolvedLettersAndDeletesTheOthersOfIt() {
    String march = partitions.month(3);
    partitions.resolved(3, 1, 3);
    partitions.unresolved(3, 4, 5);
    partitions.closed(march); // and then somebody made letters unresolved again

    DeadLetterRetentionReport report = run();

    assertThat(report.held()).containsExactly(march);
    assertThat(report.dropped()).isEmpty();
    assertThat(report.deleted()).isEqualTo(3);
    assertThat(ids()).containsExactly(4L, 5L);
    database.update("update outbox_dlq set resolved_at = now()");
    assertThat(run().dropped()).as("resolved a moment ago").isEmpty();
    partitions.closed(march);
    assertThat(run().dropped()).containsExactly(march);
  }

  @Test
  void dropsUnresolvedLettersIfToldTo() {
    String march = partitions.month(3);
    partitions.unresolved(3, 1, 2);
    partitions.month(4);
    partitions.unresolved(4, 3, 4);
    Duration sinceMarch =
        Duration.between(
            LocalDate.of(2020, 4, 1).atStartOfDay(ZoneOffset.UTC).toInstant(), Instant.now());
    DeadLetterRetention all =
        partitions.retention(database.plain()).keepAll(sinceMarch.minusHours(12)).build();

    DeadLetterRetentionReport report = all.run().orElseThrow();

    assertThat(report.dropped()).containsExactly(march);
    assertThat(report.held()).contains("outbox_dlq_p20200401");
    assertThat(ids()).containsExactly(3L, 4L);
  }

  /**
   * What a run asks does not depend on how many letters there are; nor does what is read of them.
   */
  @Test
  void readsFewPagesOfAPartitionThatItDrops() throws SQLException {
    partitions.month(3);
    partitions.resolved(3, 1, 1_000);
    partitions.month(4);
    partitions.resolved(4, 1_001, 51_000);
    CountingDataSource counted = new CountingDataSource(database.plain());
    DeadLetterRetention counting = partitions.retention(counted).build();
    counting.run(); // creates partitions
    String few = "outbox_dlq_p20200301";
    String many = "outbox_dlq_p20200401";
    long[] executions = new long[2];
    long[] statements = new long[2];

    for (String partition : List.of(few, many)) {
      int n = partition.equals(few) ? 0 : 1;
      partitions.closed(partition);
      long before = counted.executions();
      long statementsBefore = counted.statements();
      if (n == 1) {
        database.update("vacuum " + partition);
        try (ServerCounters counters = new ServerCounters(database, partition)) {
          JdbcPartitions jdbc =
              new JdbcPartitions(
                  PostgresOutbox.on(counters.session(), database.table()), Letters.TABLE);
          Partition whole =
              jdbc.look().partitions().stream()
                  .filter(each -> each.name().equals(partition))
                  .findFirst()
                  .orElseThrow();
          ServerCounters.Reads start = counters.reads();
          assertThat(jdbc.hasUnresolved(whole)).isFalse();
          ServerCounters.Reads end = counters.reads();
          assertThat(end.pages() - start.pages()).isLessThan(30);
          assertThat(end.sequentialScans()).isEqualTo(start.sequentialScans());
        }
      }
      assertThat(counting.run().orElseThrow().dropped()).containsExactly(partition);
      executions[n] = counted.executions() - before;
      statements[n] = counted.statements() - statementsBefore;
    }

    // one partition less to ask about
    assertThat(executions[1]).isLessThanOrEqualTo(executions[0]);
    assertThat(statements[1]).isLessThanOrEqualTo(statements[0]);
  }

  /** However many survive: each is looked at once, by the index of its letter. */
  @Test
  void readsHistoriesOnceAfterADrop() throws SQLException {
    String march = partitions.month(3);
    partitions.resolved(3, 1, 3_000);
    String april = partitions.month(4);
    partitions.unresolved(4, 3_001, 6_000);
    partitions.redriven();
    database.update("vacuum analyze outbox_dlq_trips");
    database.update("vacuum analyze " + april);
    partitions.closed(march);
    try (ServerCounters counters = new ServerCounters(database, april)) {
      CountingDataSource counted = new CountingDataSource(counters.session());
      ServerCounters.Reads start = counters.reads();

      assertThat(partitions.retention(counted).build().run().orElseThrow().dropped())
          .containsExactly(march);

      ServerCounters.Reads end = counters.reads();
      assertThat(counted.executionsOf("redriven_at")).isEqualTo(7);
      assertThat(end.pages() - start.pages()).isLessThan(6_000 * 5);
      assertThat(end.sequentialScans()).isEqualTo(start.sequentialScans());
    }
    assertThat(
            database.list(
                Boolean.class, "select distinct dead_letter > 3000 from outbox_dlq_trips"))
        .containsExactly(true);
    assertThat(database.count("outbox_dlq_trips")).isEqualTo(3_000);
  }

  /** An id that began anew: the history is of a letter that was there before. */
  @Test
  void aHistoryOfAnEarlierLetterOfTheIdGoes() {
    String march = partitions.month(3);
    partitions.resolved(3, 1, 1);
    partitions.month(4);
    partitions.unresolved(4, 2, 2);
    partitions.redriven();
    database.update(
        "insert into outbox_dlq_trips (dead_letter, number, redriven_by, failed_at, failure_reason,"
            + " deliveries_count, attempts_count, created_at) values (2, 1, 'bob', now(), 'x', 1, 1,"
            + " '2019-01-01Z')");
    partitions.closed(march);

    run();

    assertThat(
            database.list(
                String.class, "select dead_letter || ' ' || redriven_by from outbox_dlq_trips"))
        .containsExactly("2 ann");
  }

  @Test
  void tellsThatHeldPartitionsPileUp() {
    LocalDate first = LocalDate.of(2020, 3, 1);
    for (int n = 0; n < 17; n++) {
      LocalDate day = first.plusDays(n);
      database.update(
          "create table %s partition of outbox_dlq for values from ('%sZ') to ('%sZ')"
              .formatted(name(day), day, day.plusDays(1)));
      partitions.letter("timestamptz '%s 12:00Z'".formatted(day));
    }

    DeadLetterRetentionReport report = run();

    assertThat(report.partitions()).isEqualTo(17 + 5);
    assertThat(retention.health().problems())
        .singleElement()
        .asString()
        .startsWith(
            "Letters that nobody has resolved hold 17 of 22 partitions, the oldest of which is"
                + " outbox_dlq_p20200301; ");
    database.update("delete from outbox_dlq where failed_at < '2020-03-03Z'");
    partitions.closed(name(first));
    partitions.closed(name(first.plusDays(1)));
    run();
    assertThat(retention.health().healthy()).as("with 20").isTrue();
  }

  @Test
  void aCommentOfAPersonSaysNothingAndStays() {
    String march = partitions.month(3);
    String own = "outbox4j closed by ann, see 'the list'";
    database.update("comment on table " + march + " is '" + own.replace("'", "''") + "'");

    assertThat(run().dropped()).isEmpty();

    assertThat(retention.health().healthy()).isTrue();
    assertThat(partitions.comment(march)).startsWith(own + ", outbox4j closed 2");
    partitions.unresolved(3, 1, 1);
    assertThat(run().held()).containsExactly(march);
    assertThat(partitions.comment(march)).isEqualTo(own);
    database.update("delete from outbox_dlq");
    database.update(
        "comment on table " + march + " is 'outbox4j closed 2020-12-31T00:00:00Z, whoever reads'");
    partitions.unresolved(3, 2, 2);
    run();
    assertThat(partitions.comment(march)).isEqualTo("whoever reads");
    database.update("comment on table " + march + " is null");
    database.update("delete from outbox_dlq");
    run();
    assertThat(partitions.comment(march)).startsWith("outbox4j closed 2");
    partitions.unresolved(3, 3, 3);
    run();
    assertThat(partitions.comment(march)).isNull();
  }

  /** As after another server has taken over, whose clock is behind: it would be kept until then. */
  @Test
  void aTimeToComeInACommentSaysNothing() {
    String march = partitions.month(3);
    database.update("comment on table " + march + " is 'outbox4j closed 2999-12-31T00:00:00Z'");

    assertThat(run().dropped()).isEmpty();

    assertThat(Instant.parse(partitions.comment(march).substring("outbox4j closed ".length())))
        .isBefore(Instant.parse("2999-01-01T00:00:00Z"));
  }

  // ---- plain tables

  @Test
  void deletesInBatchesWhatIsDueInAPlainTable() {
    partitions.plain();
    partitions.resolved(3, 1, 1_200);
    partitions.unresolved(3, 1_201, 1_202);
    database.update("insert into outbox (id, queue, payload) values (1007, 'orders', 'x')");

    DeadLetterRetentionReport report = run();

    assertThat(report.partitioned()).isFalse();
    assertThat(report.deleted()).isEqualTo(1_199);
    assertThat(report.leftAlone()).isEqualTo(1); // its message is in the outbox again
    assertThat(ids()).containsExactly(7L, 1_201L, 1_202L);
    assertThat(audit("retention")).containsExactly("retention completed 1199 resolved for 720h");
    assertThat(
            partitions
                .retention(database.plain())
                .keepAll(YEAR)
                .by("nightly")
                .build()
                .run()
                .orElseThrow()
                .deleted())
        .isEqualTo(3);
    assertThat(ids()).isEmpty();
  }

  // ---- rights

  private DeadLetterRetention as(String role) {
    PGSimpleDataSource source = database.plain();
    source.setOptions("-c role=" + role);
    return partitions.retention(source).build();
  }

  @Test
  void needsTheRightsOfAnOperatorAndTheOwnerOfAPartitionedTable() {
    partitions.script("create role dlq_owner; create role dlq_operator");
    try {
      partitions.script(
          OutboxMigrations.standard().grantsSql("dlq_owner", "dlq_owner", "dlq_operator"));
      partitions.script(
          "grant create, usage on schema public to dlq_owner; alter table outbox_dlq owner to dlq_owner;"
              + " alter table outbox_dlq_default owner to dlq_owner;"
              + " alter table outbox_dlq_audit owner to dlq_owner;"
              + " alter table outbox_dlq_trips owner to dlq_owner");
      String march = partitions.month(3);
      database.update("alter table " + march + " owner to dlq_owner");
      partitions.closed(march);

      assertThatThrownBy(as("dlq_operator")::run)
          .isInstanceOf(OutboxStoreException.class)
          .hasMessageContaining("42501");
      DeadLetterRetentionReport report = as("dlq_owner").run().orElseThrow();
      assertThat(report.created()).hasSize(4);
      assertThat(report.dropped()).containsExactly(march);
      database.update("drop table " + report.created().get(3));
      assertThat(run().created()).as("by a superuser").hasSize(1);
      assertThat(
              database.list(
                  String.class,
                  "select distinct pg_get_userbyid(c.relowner)::text from pg_inherits i join pg_class c"
                      + " on c.oid = i.inhrelid where i.inhparent = 'outbox_dlq'::regclass"))
          .containsExactly("dlq_owner");

      partitions.plain();
      partitions.script(
          OutboxMigrations.standard().grantsSql("dlq_owner", "dlq_owner", "dlq_operator"));
      partitions.resolved(3, 1, 2);
      assertThat(as("dlq_operator").run().orElseThrow().deleted()).isEqualTo(2);
    } finally {
      partitions.drop();
      partitions.script("drop owned by dlq_owner, dlq_operator; drop role dlq_owner, dlq_operator");
    }
  }

  // ---- one at a time

  @Test
  void runsInOneProcessAtATime() {
    database.update(
        "insert into outbox_dlq_audit (outbox, action, acted_by, filter) values"
            + " ('public.other', 'retention', 'another process', '')");

    assertThat(retention.run()).isEmpty();
    database.update("update outbox_dlq_audit set seen_at = now() - interval '6 minutes'");
    assertThat(retention.run()).as("after that one has died").isPresent();
  }

  @Test
  void aSecondProcessLeavesItAtWhatTheFirstHasDone() {
    retention.start();
    try {
      await().until(() -> retention.health().lastRun().isPresent());
      CountingDataSource counted = new CountingDataSource(database.plain());
      DeadLetterRetention second = partitions.retention(counted).build();
      second.start();
      try {
        await().until(() -> counted.executionsOf("outbox4j retention") > 0);
      } finally {
        second.stop();
      }
      assertThat(counted.executionsOf("pg_inherits")).isZero();
      assertThat(second.health().running()).isFalse();
      assertThat(audit("retention")).hasSize(1);
    } finally {
      retention.stop();
    }
    assertThat(retention.health().running()).isFalse();
    assertThat(retention.health().healthy()).isTrue();
  }

  @Test
  void isStartedAndStoppedAgain() {
    CountingDataSource counted = new CountingDataSource(database.plain());
    DeadLetterRetention again = partitions.retention(counted).build();
    for (int i = 0; i < 2; i++) {
      long before = counted.executionsOf("outbox4j retention");
      again.start();
      again.start();
      await().until(() -> counted.executionsOf("outbox4j retention") > before);
      again.stop();
      again.stop();
    }
    assertThat(counted.mostLent()).isEqualTo(1);
  }

  private JdbcWorklist worklist(DataSource dataSource) {
    return new JdbcWorklist(PostgresOutbox.on(dataSource, database.table()), Letters.TABLE);
  }

  private boolean begins(Duration pause) {
    return worklist(database.plain()).beginRetention("ann", "", pause).isPresent();
  }

  @Test
  void aRunIsEnoughForATimeUnlessItEndedFarAhead() {
    Duration day = Duration.ofDays(1);
    run();
    assertThat(begins(day)).as("one has ended").isFalse();
    database.update("update outbox_dlq_audit set ended_at = now() + interval '1 minute'");
    assertThat(begins(day)).as("by a clock that differs a little").isFalse();
    database.update("update outbox_dlq_audit set ended_at = now() + interval '1 hour'");

    assertThat(begins(day)).as("by a clock that was ahead").isTrue();
  }

  /** Whoever asks for a run has it. */
  @Test
  void noRunThatHasEndedIsInTheWayOfOneThatIsAskedFor() {
    run();
    database.update("update outbox_dlq_audit set ended_at = now() + interval '1 minute'");

    assertThat(retention.run()).isPresent();
  }

  private void redrives(int count) {
    database.update(
        "insert into outbox_dlq_audit (outbox, action, acted_by, filter, status, ended_at)"
            + " select 'public.outbox', 'redrive', 'a program', 'ids', 'completed', now()"
            + " from generate_series(1, "
            + count
            + ")");
  }

  /** Such as those of a program that puts letters back one by one. */
  @Test
  void aRunBeginsByFewPagesHoweverManyEntriesTheAuditHas() throws SQLException {
    run();
    database.update("analyze outbox_dlq_audit"); // and the statistics get old
    redrives(100_000);
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq_audit")) {
      JdbcWorklist worklist = worklist(counters.session());
      JdbcPartitions jdbc =
          new JdbcPartitions(
              PostgresOutbox.on(counters.session(), database.table()), Letters.TABLE);
      for (String statistics : List.of("old", "new")) {
        ServerCounters.Reads start = counters.reads();

        assertThat(worklist.beginRetention("ann", "", Duration.ofDays(7)))
            .as("one has ended, %s statistics", statistics)
            .isEmpty();
        JdbcWorklist.Run begun = worklist.beginRetention("ann", "", Duration.ZERO).orElseThrow();
        assertThat(worklist.beginRetention("bob", "", Duration.ZERO)).as("one runs").isEmpty();
        assertThat(jdbc.drops()).isEmpty();
        assertThat(worklist.audit(20)).hasSize(20);
        worklist.end(begun, "completed", "", new Tally());

        ServerCounters.Reads end = counters.reads();
        assertThat(end.pages() - start.pages()).as(statistics).isLessThan(60);
        assertThat(end.sequentialScans()).isEqualTo(start.sequentialScans());
        counters.run("analyze outbox_dlq_audit");
      }
    }
  }

  /** Which it does at the end, when other partitions have been dropped and letters deleted. */
  @Test
  void aDropIsAliveWhileARunIsThatIsToDeleteItsHistories() {
    database.update(
        "insert into outbox_dlq_audit (outbox, action, acted_by, filter, seen_at) values"
            + " ('public.outbox', 'redrive', 'ann', '', now() - interval '6 minutes'),"
            + " ('public.outbox', 'drop partition', 'a', '', now() - interval '6 minutes'),"
            + " ('public.other', 'retention', 'a', '', now())");

    assertThat(statuses()).containsExactly("drop partition running", "redrive died");
    database.update("update outbox_dlq_audit set seen_at = now() - interval '6 minutes'");
    assertThat(statuses()).containsExactly("drop partition died", "redrive died");
  }

  private List<String> statuses() {
    return worklist(database.plain()).audit(10).stream()
        .map(entry -> entry.action() + " " + entry.status())
        .toList();
  }

  /** So that it goes keepResolved after its end, and not after twice that. */
  @Test
  void findsThatAPartitionHasNoUnresolvedLetterWhenItsTimeIsOver() {
    LocalDate day = today().minusDays(2);
    database.update(
        "create table %s partition of outbox_dlq for values from ('%sZ') to ('%sZ')"
            .formatted(name(day), day, day.plusDays(1)));

    DeadLetterRetentionReport report = run();

    assertThat(report.held()).isEmpty();
    assertThat(report.dropped()).isEmpty();
    assertThat(
            database.one(
                String.class, "select obj_description('%s'::regclass)".formatted(name(day))))
        .startsWith("outbox4j closed ");
  }
}
