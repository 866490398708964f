package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assumptions.assumeThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.migrations.PartitionInterval;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.CountingDataSource;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.ServerCounters;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterWriter;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.ds.PGSimpleDataSource;

/** From a plain table to one with partitions and back, with writers and without. */
@ExtendWith(PostgresExtension.class)
class PartitioningIT {
  private static final DeadLetterMigrations BY_MONTH =
      Partitions.PLAIN.partitionedBy(PartitionInterval.MONTH);

  private final TestDatabase database;
  private final Partitions partitions;
  private final Rows rows;

  PartitioningIT(TestDatabase database) {
    this.database = database;
    this.partitions = new Partitions(database);
    this.rows = new Rows(database, "outbox");
  }

  @BeforeEach
  void plain() {
    partitions.drop();
    Partitions.PLAIN.migrate(database.plain());
  }

  private boolean isPartitioned() {
    return database.one(
        Boolean.class, "select relkind = 'p' from pg_class where oid = 'outbox_dlq'::regclass");
  }

  private List<String> grants() {
    return database.list(
        String.class,
        "select format('%s %s %s', a.privilege_type, pg_get_userbyid(a.grantee), '') from pg_class c"
            + " cross join lateral aclexplode(c.relacl) a where c.oid = 'outbox_dlq'::regclass"
            + " union all select format('%s %s %s', a.privilege_type, pg_get_userbyid(a.grantee),"
            + " t.attname) from pg_attribute t cross join lateral aclexplode(t.attacl) a where"
            + " t.attrelid = 'outbox_dlq'::regclass and not t.attisdropped order by 1");
  }

  private List<String> indexes() {
    return database.list(
        String.class,
        "select replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') from pg_index where"
            + " indrelid = 'outbox_dlq'::regclass order by 1");
  }

  /** Such as a server that has to read all letters, while writers wait. */
  @Test
  void whatTakesTooLongIsTriedFiveTimes() {
    database.update("create sequence tries");
    database.update(
        "create function takes_long() returns event_trigger language plpgsql as $$ begin"
            + " if to_regclass('outbox_dlq_first') is not null then"
            + " perform nextval('tries'); perform pg_sleep(60); end if; end $$");
    database.update(
        "create event trigger takes_long on ddl_command_end execute function takes_long()");
    try {
      assertThatThrownBy(() -> BY_MONTH.migrate(database.plain()))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("statement timeout");
    } finally {
      database.update("drop event trigger takes_long");
      database.update("drop function takes_long()");
    }

    assertThat(database.one(Long.class, "select last_value from tries")).isEqualTo(5);
    database.update("drop sequence tries");
    assertThat(isPartitioned()).isFalse();
    assertThat(partitions.faults()).isEmpty();
  }

  @ParameterizedTest
  @EnumSource(PartitionInterval.class)
  void aNewTableIsPartitioned(PartitionInterval interval) {
    assertThat(Partitions.PLAIN.partitionedBy(interval).migrate(database.plain())).isEqualTo(1);

    assertThat(isPartitioned()).isTrue();
    assertThat(partitions.names()).containsExactly("outbox_dlq_default", "outbox_dlq_first");
    assertThat(partitions.faults()).isEmpty();
    assertThat(
            database.one(
                Boolean.class,
                ("select pg_get_expr(relpartbound, oid) = format('FOR VALUES FROM (MINVALUE) TO (%%L)',"
                        + " (date_trunc('%1$s', now() at time zone 'UTC') + interval '2 %1$ss')"
                        + " at time zone 'UTC') from pg_class where relname = 'outbox_dlq_first'")
                    .formatted(interval.name().toLowerCase(Locale.ROOT))))
        .as("ends with the coming period")
        .isTrue();
    assertThat(Partitions.PLAIN.partitionedBy(interval).migrate(database.plain())).isZero();
  }

  @Test
  void theWholeSqlMakesThem() {
    database.update("create schema if not exists \"Dead ones\"");
    database.update("drop table if exists \"Dead ones\".\"Letters-1\" cascade");
    DeadLetterMigrations migrations =
        DeadLetterMigrations.of("Dead ones", "Letters-1").partitionedBy(PartitionInterval.WEEK);

    partitions.script(migrations.sql());
    partitions.script(migrations.partitionSql()); // does nothing

    assertThat(
            PostgresOutbox.on(database.plain(), database.table())
                .validator()
                .deadLetters("Dead ones", "Letters-1")
                .validateSchema()
                .faults())
        .isEmpty();
    assertThat(migrations.unpartition(database.plain())).isTrue();
    assertThat(migrations.unpartition(database.plain())).isFalse();
    assertThat(
            PostgresOutbox.on(database.plain(), database.table())
                .validator()
                .deadLetters("Dead ones", "Letters-1")
                .validateSchema()
                .faults())
        .isEmpty();
    partitions.script("drop schema \"Dead ones\" cascade");
  }

  @Test
  void refusesAnotherInterval() {
    BY_MONTH.migrate(database.plain());

    assertThatThrownBy(
            () -> Partitions.PLAIN.partitionedBy(PartitionInterval.DAY).migrate(database.plain()))
        .isInstanceOf(OutboxException.class)
        .hasMessage(
            "Dead-letter table 'outbox_dlq' is not partitioned by day, by its comment 'outbox4j"
                + " schema 1, partitioned by month'; give its own interval, or change the comment");
  }

  @Test
  void keepsGrantsIndexesIdsAndCommentThereAndBack() {
    database.update("drop role if exists dlq_p");
    database.update("drop role if exists dlq_s");
    database.update("drop role if exists dlq_o");
    for (String role : List.of("dlq_p", "dlq_s", "dlq_o")) {
      database.update("create role " + role);
    }
    partitions.script(OutboxMigrations.standard().grantsSql("dlq_p", "dlq_s", "dlq_o"));
    database.update("grant select on outbox_dlq to dlq_p with grant option");
    database.update("create index own_idx on outbox_dlq (type) where type is not null");
    partitions.resolved(3, 1, 3);
    partitions.script("select setval('outbox_dlq_id_seq', 41)");
    List<String> grants = grants();
    List<String> indexes = indexes();

    BY_MONTH.migrate(database.plain());

    assertThat(grants()).isEqualTo(grants);
    assertThat(indexes()).isEqualTo(indexes);
    partitions.letter("now()");
    assertThat(database.list(Long.class, "select id from outbox_dlq order by id"))
        .containsExactly(1L, 2L, 3L, 42L);
    assertThat(partitions.faults()).isEmpty();

    assertThat(BY_MONTH.unpartition(database.plain())).isTrue();

    assertThat(isPartitioned()).isFalse();
    assertThat(grants()).isEqualTo(grants);
    assertThat(indexes()).isEqualTo(indexes);
    assertThat(partitions.faults()).isEmpty();
    assertThat(database.one(String.class, "select obj_description('outbox_dlq'::regclass)"))
        .isEqualTo("outbox4j schema 1");
    assertThat(database.one(Long.class, "select nextval('outbox_dlq_id_seq')")).isEqualTo(43);
    assertThat(
            database.list(
                String.class,
                "select relname::text from pg_class where relname like 'outbox\\_dlq\\_first%' or"
                    + " relname like 'outbox\\_dlq\\_default%' or relname like 'outbox\\_dlq\\_plain%'"))
        .isEmpty();
    assertThat(BY_MONTH.migrate(database.plain())).as("and again").isEqualTo(1);
    assertThat(partitions.faults()).isEmpty();
    database.update("drop owned by dlq_p, dlq_s, dlq_o");
    database.update("drop role dlq_p, dlq_s, dlq_o");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "create view own as select id from outbox_dlq|view own|drop view own",
        "create rule own as on delete to outbox_dlq do instead nothing|rule own|drop rule own on outbox_dlq",
        "alter table outbox_dlq enable row level security|row security|alter table outbox_dlq disable"
            + " row level security",
        "create unique index own on outbox_dlq (original_id)|unique index own|drop index own",
        "alter table outbox_dlq add constraint own exclude using btree (original_id with =)"
            + "|exclusion constraint own|alter table outbox_dlq drop constraint own",
        "create statistics own on queue, type from outbox_dlq|statistics own|drop statistics own",
        "create policy own on outbox using (exists (select from outbox_dlq))|policy own of outbox"
            + "|drop policy own on outbox",
        "create function own(outbox_dlq) returns int language sql as $$ select 1 $$"
            + "|function own(outbox_dlq)|drop function own",
        "create function own() returns setof outbox_dlq language sql as"
            + " $$ select * from outbox_dlq $$|function own()|drop function own",
        "create function own(outbox_dlq[]) returns int language sql as $$ select 1 $$"
            + "|function own(outbox_dlq[])|drop function own",
        "create table own (letter outbox_dlq)|table column public.own.letter|drop table own",
        "create publication own for table outbox_dlq|publication own|drop publication own",
        "create publication own for all tables|publication own without publish_via_partition_root"
            + "|drop publication own"
      })
  void namesWhatWouldStayWithOldLetters(String make, String obstacle, String undo) {
    database.update(make);
    try {
      assertThatThrownBy(() -> BY_MONTH.migrate(database.plain()))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("since these would stay with its old letters: " + obstacle);
      assertThat(isPartitioned()).isFalse();
    } finally {
      database.update(undo);
    }
    assertThat(partitions.faults()).as("the constraint is withdrawn").isEmpty();
  }

  /** The one sends letters under the name of the table, and would send the copies of the other. */
  @Test
  void aPublicationOfTheRootStaysAndIsNotSentCopies() {
    database.update(
        "create publication own for all tables with (publish_via_partition_root = true)");
    try {
      assertThat(BY_MONTH.migrate(database.plain())).isEqualTo(1);
      assertThat(
              database.list(
                  String.class,
                  "select tablename::text from pg_publication_tables where tablename like"
                      + " 'outbox\\_dlq%' order by 1"))
          .contains("outbox_dlq")
          .doesNotContain("outbox_dlq_first", "outbox_dlq_default");

      assertThatThrownBy(() -> BY_MONTH.unpartition(database.plain()))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("publish a copy of each letter: publication own");
      assertThat(isPartitioned()).isTrue();
    } finally {
      database.update("drop publication own");
    }
    assertThat(BY_MONTH.unpartition(database.plain())).isTrue();
  }

  @Test
  void namesAPublicationOfItsSchema() {
    assumeThat(database.one(Integer.class, "select current_setting('server_version_num')::int"))
        .isGreaterThanOrEqualTo(150_000);
    database.update("create publication own for tables in schema public");
    try {
      assertThatThrownBy(() -> BY_MONTH.migrate(database.plain()))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("publication own without publish_via_partition_root");
      database.update("alter publication own set (publish_via_partition_root = true)");
      assertThat(BY_MONTH.migrate(database.plain())).isEqualTo(1);
      assertThatThrownBy(() -> BY_MONTH.unpartition(database.plain()))
          .hasMessageContaining("publish a copy of each letter: publication own");
    } finally {
      database.update("drop publication own");
    }
  }

  /** Its body is bound to the table, as a view is, and would go on looking at old letters only. */
  @Test
  void namesAFunctionThatIsBoundToTheTable() {
    assumeThat(database.one(Integer.class, "select current_setting('server_version_num')::int"))
        .isGreaterThanOrEqualTo(140_000);
    String own =
        "create function own() returns bigint language sql begin atomic select count(*) from"
            + " outbox_dlq; end";
    database.update(own);
    assertThatThrownBy(() -> BY_MONTH.migrate(database.plain()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("since these would stay with its old letters: function own()");
    database.update("drop function own");
    BY_MONTH.migrate(database.plain());
    database.update(own);
    assertThatThrownBy(() -> BY_MONTH.unpartition(database.plain()))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("since these would be lost")
        .hasMessageContaining("function own()");
    database.update("drop function own");
    assertThat(BY_MONTH.unpartition(database.plain())).isTrue();
  }

  /** Also what hangs on a partition: else it would be found once all letters are copied. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "create unique index own on outbox_dlq (original_id, failed_at)|unique index own"
            + "|drop index own",
        "create view own as select id from outbox_dlq_first|view own|drop view own",
        "create index own on outbox_dlq_first (type)|index own of outbox_dlq_first|drop index own",
        "alter table outbox_dlq_first add constraint own check (id > 0)"
            + "|constraint own of outbox_dlq_first|alter table outbox_dlq_first drop constraint own",
        "create statistics own on queue, type from outbox_dlq|statistics own|drop statistics own",
        "create statistics own on queue, type from outbox_dlq_first|statistics own"
            + "|drop statistics own",
        "create policy own on outbox using (exists (select from outbox_dlq_first))"
            + "|policy own of outbox|drop policy own on outbox",
        "create function own(outbox_dlq) returns int language sql as $$ select 1 $$"
            + "|function own(outbox_dlq)|drop function own",
        "create function own() returns setof outbox_dlq_first language sql as"
            + " $$ select * from outbox_dlq_first $$|function own()|drop function own",
        "create domain own as outbox_dlq[]|type public.own|drop domain own"
      })
  void namesWhatWouldBeLostBeforeItCopiesLetters(String make, String obstacle, String undo) {
    BY_MONTH.migrate(database.plain());
    database.update(make);
    try {
      assertThatThrownBy(() -> BY_MONTH.unpartition(database.plain()))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining(
              "since these would be lost, or publish a copy of each letter: "
                  + obstacle
                  + "; drop them first");
    } finally {
      database.update(undo);
    }
    assertThat(BY_MONTH.unpartition(database.plain())).isTrue();
    assertThat(partitions.faults()).isEmpty();
  }

  @Test
  void keepsStorageParametersThereAndBack() {
    database.update("alter table outbox_dlq set (autovacuum_vacuum_scale_factor = 0.01)");

    BY_MONTH.migrate(database.plain());

    assertThat(
            database.list(
                String.class,
                "select c.relname || ' ' || c.reloptions::text from pg_inherits i join pg_class c on"
                    + " c.oid = i.inhrelid where i.inhparent = 'outbox_dlq'::regclass order by 1"))
        .containsExactly(
            "outbox_dlq_default {autovacuum_vacuum_scale_factor=0.01}",
            "outbox_dlq_first {autovacuum_vacuum_scale_factor=0.01}");
    BY_MONTH.unpartition(database.plain());
    assertThat(
            database.one(
                String.class,
                "select reloptions::text from pg_class where oid = 'outbox_dlq'::regclass"))
        .isEqualTo("{autovacuum_vacuum_scale_factor=0.01}");
  }

  // ---- with writers

  /** Letters that are written all the time, as a subscriber would. */
  private final class Writers implements AutoCloseable {
    private final HikariDataSource pool = database.pool(4);
    private final ExecutorService threads = Executors.newFixedThreadPool(4);
    private final AtomicBoolean running = new AtomicBoolean(true);
    private final AtomicInteger written = new AtomicInteger();
    private final List<Future<List<Long>>> all = new ArrayList<>();

    Writers() {
      for (int i = 0; i < 4; i++) {
        all.add(threads.submit(this::write));
      }
      awaitMore();
    }

    private List<Long> write() {
      DeadLetterWriter writer =
          Letters.TABLE.bind(PostgresOutbox.on(pool, database.table()).store());
      List<Long> ids = new ArrayList<>();
      while (running.get()) {
        long id = rows.lease("orders");
        ids.add(id);
        while (!writes(writer, id)) {
          Thread.onSpinWait();
        }
        written.incrementAndGet();
      }
      return ids;
    }

    /** What is locked is tried again, and nothing else may happen. */
    private boolean writes(DeadLetterWriter writer, long id) {
      try {
        return writer.write(List.of(Rows.entry("orders", id))).done().contains(id);
      } catch (OutboxStoreException e) {
        assertThat(e.fault()).isIn(Fault.TIMEOUT, Fault.TRANSIENT);
        return false;
      }
    }

    void awaitMore() {
      int before = written.get();
      await().until(() -> written.get() >= before + 50);
    }

    List<Long> end() throws Exception {
      running.set(false);
      List<Long> ids = new ArrayList<>();
      for (Future<List<Long>> each : all) {
        ids.addAll(each.get());
      }
      Collections.sort(ids);
      return ids;
    }

    @Override
    public void close() {
      running.set(false);
      threads.shutdownNow();
      pool.close();
    }
  }

  @Test
  void noLetterIsLostOrWrittenTwiceByWritersMeanwhile() throws Exception {
    partitions.resolved(3, 1_000_001, 1_020_000);
    try (Writers writers = new Writers()) {
      assertThat(BY_MONTH.migrate(database.plain())).isEqualTo(1);
      writers.awaitMore();
      partitions.retention(database.plain()).build().run();
      writers.awaitMore();
      assertThat(BY_MONTH.unpartition(database.plain())).isTrue();
      writers.awaitMore();
      List<Long> written = writers.end();

      assertThat(
              database.list(
                  Long.class,
                  "select original_id from outbox_dlq where id <= 1000000 order by original_id"))
          .isEqualTo(written);
    }
    assertThat(database.one(Long.class, "select count(*) - count(distinct id) from outbox_dlq"))
        .isZero();
    assertThat(database.count("outbox_dlq where id > 1000000")).isEqualTo(20_000);
    assertThat(database.count("outbox")).isZero();
    assertThat(partitions.faults()).isEmpty();
  }

  /** The copy would be by a snapshot that is older than the lock: a letter between is lost. */
  @Test
  void losesNoLetterWhereRepeatableReadIsTheDefault() throws Exception {
    BY_MONTH.migrate(database.plain());
    PGSimpleDataSource strict = database.plain();
    strict.setOptions("-c default_transaction_isolation=repeatable\\ read");
    try (Connection writer = partitions.transaction(Partitions.letterSql("now()"));
        Connection owner = strict.getConnection();
        Statement unpartitions = owner.createStatement()) {
      CompletableFuture<Throwable> done =
          CompletableFuture.supplyAsync(
              () ->
                  catchThrowable(
                      () ->
                          unpartitions.execute(
                              "select set_config('lock_timeout', '60s', true);\n"
                                  + BY_MONTH.unpartitionSql())));
      await().until(() -> done.isDone() || partitions.waiting() > 0);
      writer.commit();
      assertThat(done.get()).hasMessageContaining("use read committed");
    }
    assertThat(BY_MONTH.unpartition(strict)).isTrue();
    assertThat(database.count("outbox_dlq where original_id = 77")).isEqualTo(1);
  }

  // ---- cut off

  @Test
  void goesOnAfterAProcessThatDiedBeforeAnyOfItsStatements() {
    boolean cut = true;
    int statements = 0;
    for (; cut; statements++) {
      plain();
      partitions.resolved(3, 1, 10);
      CountingDataSource dying = new CountingDataSource(database.plain());
      AtomicInteger left = new AtomicInteger(statements);
      AtomicBoolean died = new AtomicBoolean();
      dying.beforeEach(
          text -> {
            boolean ours = text.contains("outbox_dlq_until") || text.contains("relkind = 'p'");
            if (ours && left.getAndDecrement() <= 0) {
              died.set(true);
              throw new Killed();
            }
          });
      try {
        BY_MONTH.migrate(dying);
      } catch (Killed e) {
        assertThat(died).isTrue();
      }
      cut = died.get();
      assertThat(database.count("outbox_dlq")).isEqualTo(10);

      BY_MONTH.migrate(database.plain());

      assertThat(isPartitioned()).isTrue();
      assertThat(partitions.faults()).isEmpty();
      assertThat(database.count("outbox_dlq")).isEqualTo(10);
    }
    assertThat(statements).isGreaterThan(4);
  }

  private static final class Killed extends RuntimeException {
    private static final long serialVersionUID = 1;
  }

  @Test
  void lettersAreReadBesideTheWritersAndNotOnceMoreWhileTheyWait() throws SQLException {
    partitions.resolved(3, 1, 1_000);
    try (ServerCounters counters = new ServerCounters(database, "outbox_dlq_trips")) {
      counters.reads();
      long before = counters.sequentialScansOf("outbox_dlq");

      assertThat(BY_MONTH.migrate(counters.session())).isEqualTo(1);

      counters.reads();
      assertThat(counters.sequentialScansOf("outbox_dlq_first") - before).isEqualTo(1);
    }
  }

  /** Nobody calls again for months, and letters come of the time that was said to have none. */
  @Test
  void noLetterIsRefusedAfterAProcessThatDiedBetween() {
    CountingDataSource dying = new CountingDataSource(database.plain());
    dying.beforeEach(
        text -> {
          if (text.contains("partition by range")) {
            throw new Killed();
          }
        });
    assertThatThrownBy(() -> BY_MONTH.migrate(dying)).isInstanceOf(Killed.class);
    assertThat(partitions.constraints()).containsExactly(true);

    partitions.later("4 months");
    partitions.letter("now() + interval '3 months'");

    assertThat(database.count("outbox_dlq")).isEqualTo(1);
    database.update("truncate outbox_dlq");
    assertThat(BY_MONTH.migrate(database.plain())).isEqualTo(1);
    assertThat(partitions.constraints()).isEmpty();
    assertThat(partitions.faults()).isEmpty();
  }

  @Test
  void severalMayPartitionItAtOnce() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      List<Future<Integer>> all =
          threads.invokeAll(Collections.nCopies(4, () -> BY_MONTH.migrate(database.plain())));
      for (Future<Integer> each : all) {
        assertThat(each.get()).isBetween(0, 1);
      }
    } finally {
      threads.shutdown();
    }
    assertThat(isPartitioned()).isTrue();
    assertThat(partitions.faults()).isEmpty();
  }

  /** Begins the way back beside somebody who looks at letters; returns once it waits for that. */
  private CompletableFuture<Boolean> waitsBehindAReader(DataSource dataSource) {
    CompletableFuture<Boolean> done =
        CompletableFuture.supplyAsync(() -> BY_MONTH.unpartition(dataSource));
    await() // longer than the wait for locks of its other statements
        .during(Duration.ofMillis(500))
        .until(() -> partitions.waiting() > 0);
    return done;
  }

  /** To copy all letters once more would keep writers out for as long again. */
  @Test
  void waitsForWhoLooksAtLettersAndDoesNotBeginAnew() throws Exception {
    BY_MONTH.migrate(database.plain());
    partitions.resolved(3, 1, 1_000);
    CountingDataSource counted = new CountingDataSource(database.plain());
    try (Connection reader = partitions.transaction("select count(*) from outbox_dlq")) {
      CompletableFuture<Boolean> done = waitsBehindAReader(counted);
      reader.rollback();
      assertThat(done.get()).isTrue();
    }
    assertThat(counted.executionsOf("unpartition")).isEqualTo(1);
    assertThat(database.count("outbox_dlq")).isEqualTo(1_000);
  }

  /** The letters are copied by then, and nobody could write any while they are copied again. */
  @Test
  void isNotTriedAgainIfSomebodyLooksAtLettersForVeryLong() throws Exception {
    BY_MONTH.migrate(database.plain());
    try (Connection reader = partitions.transaction("select count(*) from outbox_dlq")) {
      assertThatThrownBy(
              () -> partitions.script(BY_MONTH.unpartitionSql().replace("'60s'", "'200ms'")))
          .cause()
          .isInstanceOfSatisfying(
              SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("55006"))
          .hasMessageContaining("end that first");
      reader.rollback();
    }
    assertThat(isPartitioned()).isTrue();
  }

  /** Since nobody can write letters meanwhile. */
  @Test
  void whoCancelsItOnTheServerCancelsIt() throws Exception {
    BY_MONTH.migrate(database.plain());
    PGSimpleDataSource own = database.plain();
    own.setApplicationName("the way back");
    CountingDataSource counted = new CountingDataSource(own);
    try (Connection reader = partitions.transaction("select count(*) from outbox_dlq")) {
      CompletableFuture<Boolean> done = waitsBehindAReader(counted);

      assertThat(
              database.list(
                  Boolean.class,
                  "select pg_cancel_backend(pid) from pg_stat_activity"
                      + " where application_name = 'the way back'"))
          .containsExactly(true);

      await().untilAsserted(() -> assertThat(done).isDone());
      assertThatThrownBy(done::get).hasRootCauseInstanceOf(SQLException.class);
      reader.rollback();
    }
    assertThat(counted.executionsOf("unpartition")).isEqualTo(1);
    assertThat(isPartitioned()).isTrue();
  }

  /** Or the last step of the first would read all letters while nobody can write any. */
  @Test
  void aSecondOneLeavesTheConstraintThatTheFirstHasValidated() {
    partitions.resolved(3, 1, 10);
    CountingDataSource first = new CountingDataSource(database.plain());
    CountingDataSource second = new CountingDataSource(database.plain());
    second.beforeEach(
        text -> {
          if (text.contains("validate constraint")) {
            throw new Killed();
          }
        });
    AtomicBoolean looked = new AtomicBoolean();
    first.beforeEach(
        text -> {
          if (text.contains("partition by range") && looked.compareAndSet(false, true)) {
            assertThatThrownBy(() -> BY_MONTH.migrate(second)).isInstanceOf(Killed.class);
            assertThat(
                    database.list(
                        Boolean.class,
                        "select convalidated from pg_constraint where conname = 'outbox_dlq_until'"))
                .containsExactly(true);
          }
        });

    assertThat(BY_MONTH.migrate(first)).isEqualTo(1);

    assertThat(looked).isTrue();
    assertThat(partitions.faults()).isEmpty();
  }
}
