package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.OutboxStoreException.Fault;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TcpProxy;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.spi.Written;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What the store says and does when a statement fails. */
@ExtendWith(PostgresExtension.class)
class StoreFaultsIT {
  private static final String SECRET = "s3cr3t-value";

  private final TestDatabase database;

  StoreFaultsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
  }

  @Test
  void aMissingTableIsASetupFault() {
    PostgresStore store = PostgresOutbox.on(database.plain(), OutboxTable.named("nowhere")).store();

    OutboxStoreException e = failure(() -> claim(store, 1));

    assertThat(e.fault()).isEqualTo(Fault.SETUP);
    assertThat(e.outcomeUnknown()).isFalse();
    assertThat(e)
        .hasMessageContaining("claim on nowhere failed")
        .hasMessageContaining("does not exist")
        .hasMessageContaining("run the migrations")
        .hasMessageContaining("42P01");
  }

  @Test
  void aMissingColumnIsASetupFault() {
    OutboxMigrations.of("public", "narrow")
        .deadLetters("public", "narrow_dlq")
        .migrate(database.plain());
    database.update("alter table narrow drop column leased_by");
    PostgresStore store = PostgresOutbox.on(database.plain(), OutboxTable.named("narrow")).store();

    OutboxStoreException e = failure(() -> claim(store, 1));

    assertThat(e.fault()).isEqualTo(Fault.SETUP);
    assertThat(e).hasMessageContaining("columns").hasMessageContaining("leased_by");
  }

  @Test
  void aMissingGrantIsASetupFault() {
    String role = "r_" + database.name();
    database.update("create role " + role + " login password 'x'");
    try {
      database.update("grant usage on schema public to " + role);
      PGSimpleDataSource source = database.plain();
      source.setUser(role);
      source.setPassword("x");

      OutboxStoreException e =
          failure(() -> claim(PostgresOutbox.on(source, database.table()).store(), 1));

      assertThat(e.fault()).isEqualTo(Fault.SETUP);
      assertThat(e).hasMessageContaining("grant").hasMessageContaining("42501");
    } finally {
      database.update("drop owned by " + role);
      database.update("drop role " + role);
    }
  }

  @Test
  void aServerThatCannotBeReachedIsAFaultOfTheConnectionAndNothingWasSent() {
    PGSimpleDataSource source = database.plain();
    source.setPortNumbers(new int[] {1});

    OutboxStoreException e =
        failure(() -> claim(PostgresOutbox.on(source, database.table()).store(), 1));

    assertThat(e.fault()).isEqualTo(Fault.CONNECTION);
    assertThat(e.outcomeUnknown()).isFalse();
    assertThat(e).hasMessageContaining("no connection could be had");
  }

  @Test
  void aConnectionThatWasKilledHasAnUnknownOutcomeAndThePoolRecovers() {
    HikariDataSource pool = database.pool(1);
    PostgresStore store = PostgresOutbox.on(pool, database.table()).store();
    Rows.fill(database, "outbox", "orders", 2);
    LeaseRef lease = claim(store, 1).get(0);
    database.list(
        Boolean.class,
        "select pg_terminate_backend(pid) from pg_stat_activity"
            + " where datname = current_database() and pid <> pg_backend_pid()");

    OutboxStoreException e = failure(() -> store.ack(List.of(lease)));

    assertThat(e.fault()).isEqualTo(Fault.CONNECTION);
    assertThat(e.outcomeUnknown()).isTrue();
    assertThat(store.ack(List.of(lease)).done()).containsExactly(lease.id());
    assertThat(claim(store, 1)).hasSize(1);
  }

  @Test
  void anAnswerThatDoesNotComeIsGivenUpAndTheConnectionLeavesThePool() {
    try (TcpProxy proxy = new TcpProxy(database.server().host(), database.server().port())) {
      PGSimpleDataSource source = database.plain();
      source.setServerNames(new String[] {proxy.host()});
      source.setPortNumbers(new int[] {proxy.port()});
      HikariConfig config = new HikariConfig();
      config.setDataSource(source);
      config.setMaximumPoolSize(1);
      try (HikariDataSource pool = new HikariDataSource(config)) {
        PostgresStore store =
            PostgresOutbox.on(pool, database.table()).store(Duration.ofSeconds(1));
        assertThat(claim(store, 1)).isEmpty();
        proxy.blackhole();

        OutboxStoreException e = failure(() -> claim(store, 1));

        assertThat(e.fault()).isEqualTo(Fault.CONNECTION);
        assertThat(e.outcomeUnknown()).isTrue();
        proxy.resume();
        // many: a claim whose answer is late holds one
        Rows.fill(database, "outbox", "orders", 20);
        await().ignoreExceptions().until(() -> claim(store, 1).size() == 1);
        assertThat(pool.getHikariPoolMXBean().getActiveConnections()).isZero();
      }
    }
  }

  @Test
  void aWriteThatFindsMoreRowsThanAskedFailsAloudAndChangesNothing() {
    OutboxMigrations.of("public", "twins")
        .deadLetters("public", "twins_dlq")
        .migrate(database.plain());
    database.update("alter table twins drop constraint twins_pkey");
    database.update(
        "insert into twins (id, queue, payload, lease_until, lease_token)"
            + " select 7, 'orders', '', now() + interval '1 hour', 1 from generate_series(1, 3)");
    PostgresStore store = PostgresOutbox.on(database.plain(), OutboxTable.named("twins")).store();
    List<LeaseRef> leases = List.of(new LeaseRef("orders", 7, 1));
    String before = twins();

    List<ThrowingCallable> writes =
        List.of(
            () -> store.ack(leases),
            () -> store.renew(leases, Duration.ofHours(9)),
            () -> store.release(leases),
            () -> store.retry(List.of(new RetryUpdate(leases.get(0), Duration.ZERO, "failed"))),
            () -> store.reschedule(List.of(new RescheduleUpdate(leases.get(0), Duration.ZERO))));

    for (ThrowingCallable write : writes) {
      OutboxStoreException e = failure(write);
      assertThat(e.fault()).isEqualTo(Fault.ROW);
      assertThat(e.outcomeUnknown()).isFalse();
      assertThat(e)
          .hasMessageContaining("rolled back")
          .hasMessageContaining("more rows were found than were asked for")
          .hasMessageContaining("primary key");
      assertThat(twins()).isEqualTo(before);
    }
  }

  private String twins() {
    return database.one(
        String.class, "select string_agg(t::text, ',' order by t.ctid) from twins t");
  }

  @Test
  void aRowThatTheServerRefusesIsARowFaultAndItsValuesStayUnsaid() {
    Rows.fill(database, "outbox", "orders", 2);
    PostgresStore store = PostgresOutbox.on(database.plain(), database.table()).store();
    List<LeaseRef> leases = claim(store, 2);
    database.update(
        "alter table outbox add constraint no_secrets check (last_error not like '%"
            + SECRET
            + "%')");
    try {
      OutboxStoreException e =
          failure(
              () ->
                  store.retry(
                      List.of(
                          new RetryUpdate(leases.get(0), Duration.ZERO, "fine"),
                          new RetryUpdate(leases.get(1), Duration.ZERO, SECRET))));

      assertThat(e.fault()).isEqualTo(Fault.ROW);
      assertThat(e).hasMessageContaining("no_secrets").hasMessageContaining("23514");
      assertThat(logged(e)).doesNotContain(SECRET).doesNotContain("Detail");
      assertThat(database.one(Integer.class, "select sum(attempts_count)::int from outbox"))
          .as("attempts, since a statement is atomic")
          .isZero();
    } finally {
      database.update("alter table outbox drop constraint no_secrets");
    }
  }

  @Test
  void aTriggersExceptionIsARowFault() {
    Rows.fill(database, "outbox", "orders", 1);
    PostgresStore store = PostgresOutbox.on(database.plain(), database.table()).store();
    List<LeaseRef> leases = claim(store, 1);
    database.update(
        "create function refuse() returns trigger language plpgsql as"
            + " $$ begin raise exception 'not today'; end $$");
    database.update(
        "create trigger refuse before delete on outbox for each row execute function refuse()");
    try {
      OutboxStoreException e = failure(() -> store.ack(leases));

      assertThat(e.fault()).isEqualTo(Fault.ROW);
      assertThat(e).hasMessageContaining("P0001: not today");
    } finally {
      database.update("drop trigger refuse on outbox");
      database.update("drop function refuse()");
    }
  }

  @Test
  void anAckAndARenewalOfTheSameRowsDoNotDeadlock() {
    PostgresStore store = PostgresOutbox.on(database.pool(2), database.table()).store();
    for (int round = 0; round < 20; round++) {
      Rows.fill(database, "outbox", "orders", 500);
      List<LeaseRef> leases = claim(store, 500);
      List<LeaseRef> reversed = new ArrayList<>(leases);
      Collections.reverse(reversed);

      CompletableFuture<?> renewal =
          CompletableFuture.runAsync(() -> store.renew(reversed, Duration.ofSeconds(60)));

      Written written = store.ack(leases);
      assertThat(written.done().size() + written.busy().size()).isEqualTo(500);
      renewal.join();
    }
    assertThat(
            database.one(
                Long.class,
                "select deadlocks from pg_stat_database where datname = current_database()"))
        .isZero();
  }

  /** Two writes that take the same rows in different orders may wait for each other. */
  @Test
  void rowsAreTakenInTheOrderOfTheirIdsWhateverThatOfTheLeases() {
    PostgresStore store = PostgresOutbox.on(database.pool(1), database.table()).store();
    Rows.fill(database, "outbox", "orders", 50);
    List<LeaseRef> reversed = new ArrayList<>(claim(store, 50));
    Collections.reverse(reversed);
    database.update(
        "create table taken (place bigint generated always as identity, act text, id bigint)");
    database.update(
        "create function note_taken() returns trigger language plpgsql as $$ begin"
            + " insert into taken (act, id) values (tg_op, old.id);"
            + " if tg_op = 'DELETE' then return old; end if; return new; end $$");
    database.update(
        "create trigger note_taken before update or delete on outbox"
            + " for each row execute function note_taken()");
    try {
      store.renew(reversed, Duration.ofSeconds(60));
      store.ack(reversed);
    } finally {
      database.update("drop trigger note_taken on outbox");
    }

    for (String act : List.of("UPDATE", "DELETE")) {
      assertThat(
              database.one(
                  String.class,
                  "select count(*) || ' ' || (array_agg(id order by place) = array_agg(id order by id))"
                      + " from taken where act = ?",
                  act))
          .isEqualTo("50 true");
    }
  }

  private static String logged(Throwable e) {
    StringWriter text = new StringWriter();
    e.printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  private static OutboxStoreException failure(ThrowingCallable call) {
    OutboxStoreException e = catchThrowableOfType(OutboxStoreException.class, call);
    assertThat(e).isNotNull();
    return e;
  }

  private static List<LeaseRef> claim(PostgresStore store, int limit) {
    return Requests.claim(store, limit);
  }
}
