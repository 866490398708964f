package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

@ExtendWith(PostgresExtension.class)
class BrokenDeadLettersIT {
  private final TestDatabase database;
  private final Rows rows;
  private HikariDataSource pool;
  private DeadLetterWriter writer;

  BrokenDeadLettersIT(TestDatabase database) {
    this.database = database;
    this.rows = new Rows(database, "outbox");
  }

  @BeforeEach
  void begin() {
    database.update("truncate outbox");
    database.update("create table broken (like outbox_dlq including all)");
    pool = database.pool(1);
    writer = DeadLetterQueue.in("broken").bind(PostgresOutbox.on(pool, database.table()).store());
  }

  @AfterEach
  void nothingIsBorrowed() {
    assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
    pool.close();
    database.update("drop table if exists broken");
  }

  @Test
  void keepsTheRowsWhileTheTableIsMissingAndMovesThemOnceItIsBack() {
    long first = rows.lease("orders");
    long second = rows.lease("orders");
    List<DeadLetterEntry> entries =
        List.of(Rows.entry("orders", first), Rows.entry("orders", second));
    database.update("alter table broken rename to away");

    OutboxStoreException failure = failure(entries);

    assertThat(failure.fault()).isEqualTo(Fault.SETUP);
    assertThat(failure.outcomeUnknown()).isFalse();
    assertThat(failure)
        .hasMessageContaining("dead-letter to broken on outbox failed")
        .hasMessageContaining("42P01")
        .hasMessageContaining("run the migrations");
    assertThat(List.of(first, second)).allMatch(rows::untouched);

    database.update("alter table away rename to broken");
    assertThat(writer.write(entries).done()).containsExactlyInAnyOrder(first, second);
    assertThat(database.count("broken")).isEqualTo(2);
  }

  @Test
  void keepsTheRowsWhileAColumnIsMissing() {
    long id = rows.lease("orders");
    List<DeadLetterEntry> entries = List.of(Rows.entry("orders", id));
    database.update("alter table broken rename timer_id to other_id");

    OutboxStoreException failure = failure(entries);

    assertThat(failure.fault()).isEqualTo(Fault.SETUP);
    assertThat(failure).hasMessageContaining("42703").hasMessageContaining("timer_id");
    assertThat(rows.untouched(id)).isTrue();

    database.update("alter table broken rename other_id to timer_id");
    assertThat(writer.write(entries).done()).containsExactly(id);
  }

  @Test
  void worksAgainAfterAColumnChangedUnderAPreparedStatement() {
    for (int i = 0; i < 10; i++) {
      writer.write(List.of(Rows.entry("orders", rows.lease("orders"))));
    }
    database.update("truncate broken");
    database.update("alter table broken alter column last_exception type varchar(4)");
    long id = rows.lease("orders");

    OutboxStoreException failure = failure(List.of(Rows.entry("orders", id)));

    assertThat(failure.fault()).isEqualTo(Fault.ROW);
    assertThat(failure).hasMessageContaining("22001");
    assertThat(rows.untouched(id)).isTrue();

    database.update("alter table broken alter column last_exception type text");
    assertThat(writer.write(List.of(Rows.entry("orders", id))).done()).containsExactly(id);
  }

  @Test
  void keepsAllRowsOfABatchOfWhichAConstraintRefusesOneAndSaysThatTheRowIsAtFault() {
    database.update("alter table broken add constraint no_poison check (original_id % 2 = 0)");
    List<Long> both = rows.lease("orders", 2); // of which one is odd
    long good = both.stream().filter(id -> id % 2 == 0).findFirst().orElseThrow();
    long bad = both.stream().filter(id -> id % 2 != 0).findFirst().orElseThrow();

    OutboxStoreException failure =
        failure(List.of(Rows.entry("orders", good), Rows.entry("orders", bad)));

    assertThat(failure.fault()).isEqualTo(Fault.ROW);
    assertThat(failure.outcomeUnknown()).isFalse();
    assertThat(failure).hasMessageContaining("no_poison").hasMessageContaining("23514");
    assertThat(List.of(good, bad)).allMatch(rows::untouched);
    assertThat(database.count("broken")).isZero();

    assertThat(writer.write(List.of(Rows.entry("orders", good))).done()).containsExactly(good);
    assertThat(failure(List.of(Rows.entry("orders", bad))).fault()).isEqualTo(Fault.ROW);
    database.update("alter table broken drop constraint no_poison");
    assertThat(writer.write(List.of(Rows.entry("orders", bad))).done()).containsExactly(bad);
  }

  @Test
  void showsNothingOfTheRowInTheFailure() {
    database.update("alter table broken add constraint refused check (false)");
    long id = rows.lease("orders");

    StringWriter trace = new StringWriter();
    failure(List.of(Rows.entry("orders", id))).printStackTrace(new PrintWriter(trace));

    assertThat(trace.toString())
        .contains("refused")
        .doesNotContain(Rows.SECRET)
        .doesNotContain("why it failed");
    assertThat(rows.untouched(id)).isTrue();
  }

  @Test
  void keepsTheRowThatATriggerRefuses() {
    database.update(
        """
        create or replace function refuse() returns trigger language plpgsql
        as $$ begin raise exception 'not on a Friday'; end $$
        """);
    database.update(
        "create trigger refuse before insert on broken for each row execute function refuse()");
    long id = rows.lease("orders");

    OutboxStoreException failure = failure(List.of(Rows.entry("orders", id)));

    assertThat(failure.fault()).isEqualTo(Fault.ROW);
    assertThat(failure).hasMessageContaining("not on a Friday").hasMessageContaining("P0001");
    assertThat(rows.untouched(id)).isTrue();

    database.update("drop trigger refuse on broken");
    assertThat(writer.write(List.of(Rows.entry("orders", id))).done()).containsExactly(id);
  }

  @Test
  void keepsTheRowsOfAGroupOfWhichATriggerSwallowsOne() {
    database.update(
        """
        create or replace function swallow() returns trigger language plpgsql
        as $$ begin return case when new.original_id % 2 = 0 then null else new end; end $$
        """);
    database.update(
        "create trigger swallow before insert on broken for each row execute function swallow()");
    List<Long> ids = rows.lease("orders", 2);
    long swallowed = ids.get(0) % 2 == 0 ? ids.get(0) : ids.get(1);
    long taken = ids.get(0) % 2 == 0 ? ids.get(1) : ids.get(0);

    OutboxStoreException failure =
        failure(List.of(Rows.entry("orders", swallowed), Rows.entry("orders", taken)));

    assertThat(failure.fault()).isEqualTo(Fault.ROW);
    assertThat(failure)
        .hasMessageContaining("not every dead letter arrived")
        .hasMessageContaining("trigger")
        .hasMessageNotContaining("why it failed");
    assertThat(ids).allMatch(rows::untouched);
    assertThat(writer.write(List.of(Rows.entry("orders", taken))).done()).containsExactly(taken);
    assertThat(failure(List.of(Rows.entry("orders", swallowed)))).isNotNull();
    assertThat(rows.untouched(swallowed)).isTrue();
    assertThat(database.count("broken")).isEqualTo(1);
  }

  @Test
  void keepsTheRowThatARuleSwallows() {
    database.update("create rule swallow as on insert to broken do instead nothing");
    long id = rows.lease("orders");

    assertThat(failure(List.of(Rows.entry("orders", id)))).isNotNull();

    assertThat(rows.untouched(id)).isTrue();
    assertThat(database.count("broken")).isZero();
  }

  @Test
  void keepsTheRowThatIsRefusedAtTheCommit() {
    database.update("create table if not exists known_queue (name text primary key)");
    database.update(
        "alter table broken add constraint known foreign key (queue) references known_queue"
            + " deferrable initially deferred");
    long id = rows.lease("orders");

    OutboxStoreException failure = failure(List.of(Rows.entry("orders", id)));

    assertThat(failure.fault()).isEqualTo(Fault.ROW);
    assertThat(failure).hasMessageContaining("23503");
    assertThat(rows.untouched(id)).isTrue();
    assertThat(database.count("broken")).isZero();
  }

  @Test
  void saysWhichGrantIsMissing() {
    database.update("drop role if exists mover_without_grants");
    database.update("create role mover_without_grants login password 'x'");
    try {
      database.update("grant select, delete on outbox to mover_without_grants");
      PGSimpleDataSource source = database.plain();
      source.setUser("mover_without_grants");
      source.setPassword("x");
      DeadLetterWriter limited =
          DeadLetterQueue.in("broken").bind(PostgresOutbox.on(source, database.table()).store());
      long id = rows.lease("orders");
      List<DeadLetterEntry> entries = List.of(Rows.entry("orders", id));

      OutboxStoreException failure =
          catchThrowableOfType(OutboxStoreException.class, () -> limited.write(entries));

      assertThat(failure.fault()).isEqualTo(Fault.SETUP);
      assertThat(failure)
          .hasMessageContaining("permission denied")
          .hasMessageContaining("42501")
          .hasMessageContaining("a right is missing");
      assertThat(rows.untouched(id)).isTrue();

      database.update("grant insert, select, update on broken to mover_without_grants");
      assertThat(limited.write(entries).done()).containsExactly(id);
    } finally {
      database.update("drop owned by mover_without_grants");
      database.update("drop role mover_without_grants");
    }
  }

  @Test
  void rollsBackAndShoutsWhenMoreRowsThanAskedWereDeleted() {
    database.update("create table twins (like outbox including defaults including identity)");
    try {
      Rows twins = new Rows(database, "twins");
      long id = twins.lease("orders");
      long healthy = twins.lease("orders");
      database.update("insert into twins select * from twins where id = ?", id);
      DeadLetterWriter mover =
          DeadLetterQueue.in("broken")
              .bind(PostgresOutbox.on(pool, OutboxTable.named("twins")).store());

      // three rows for two entries; two rows for one entry that exists and one that does not
      for (List<DeadLetterEntry> entries :
          List.of(
              List.of(Rows.entry("orders", id), Rows.entry("orders", healthy)),
              List.of(Rows.entry("orders", id), Rows.entry("orders", healthy + 1000)))) {
        OutboxStoreException failure =
            catchThrowableOfType(OutboxStoreException.class, () -> mover.write(entries));

        assertThat(failure)
            .hasMessageContaining("rolled back")
            .hasMessageContaining("more rows were found than were asked for")
            .hasMessageContaining("primary key");
        assertThat(failure.outcomeUnknown()).isFalse();
        assertThat(database.count("twins")).isEqualTo(3);
        assertThat(database.count("broken")).isZero();
      }

      assertThat(mover.write(List.of(Rows.entry("orders", healthy))).done())
          .containsExactly(healthy);
    } finally {
      database.update("drop table twins");
    }
  }

  private OutboxStoreException failure(List<DeadLetterEntry> entries) {
    return catchThrowableOfType(OutboxStoreException.class, () -> writer.write(entries));
  }
}
