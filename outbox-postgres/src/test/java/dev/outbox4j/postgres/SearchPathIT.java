package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.RetryUpdate;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A schema of somebody else's, with tables, functions and operators that look like ours and like
 * the server's, stands ahead of all others in the search path; and so does a temporary table.
 */
@ExtendWith(PostgresExtension.class)
class SearchPathIT {
  private static final OutboxTable QUALIFIED = OutboxTable.named("outbox").inSchema("public");

  private static final String LOOK_ALIKES =
      """
      drop schema if exists evil cascade;
      create schema evil;
      create table evil.calls (what text);
      create table evil.outbox (like public.outbox including all);
      create table evil.outbox_sleepers (like public.outbox_sleepers including all);
      create function evil.note(what text) returns void language sql
        as $$ insert into evil.calls values (what) $$;
      create function evil.clock_timestamp() returns timestamptz language plpgsql
        as $$ begin perform evil.note('clock_timestamp'); return 'infinity'; end $$;
      create function evil.now() returns timestamptz language plpgsql
        as $$ begin perform evil.note('now'); return 'infinity'; end $$;
      create function evil.pg_notify(text, text) returns void language plpgsql
        as $$ begin perform evil.note('pg_notify'); end $$;
      create function evil.pg_notify(varchar, varchar) returns void language plpgsql
        as $$ begin perform evil.note('pg_notify'); end $$;
      create function evil.set_config(varchar, varchar, boolean) returns text language plpgsql
        as $$ begin perform evil.note('set_config'); return ''; end $$;
      create function evil.set_config(text, text, boolean) returns text language plpgsql
        as $$ begin perform evil.note('set_config'); return ''; end $$;
      create function evil.isfinite(timestamptz) returns boolean language plpgsql
        as $$ begin perform evil.note('isfinite'); return true; end $$;
      create function evil.btrim(text, text) returns text language plpgsql
        as $$ begin perform evil.note('btrim'); return $1; end $$;
      create function evil.octet_length(bytea) returns int language plpgsql
        as $$ begin perform evil.note('octet_length'); return 1; end $$;
      create function evil.convert_to(text, name) returns bytea language plpgsql
        as $$ begin perform evil.note('convert_to'); return ''; end $$;
      create function evil.jsonb_typeof(jsonb) returns text language plpgsql
        as $$ begin perform evil.note('jsonb_typeof'); return 'object'; end $$;
      create function evil.substr(bytea, int, int) returns bytea language plpgsql
        as $$ begin perform evil.note('substr'); return 'forged'; end $$;
      create function evil.make_interval(secs double precision) returns interval language plpgsql
        as $$ begin perform evil.note('make_interval'); return '1 year'; end $$;
      create function evil.same(text, text) returns boolean language plpgsql
        as $$ begin perform evil.note('='); return true; end $$;
      create operator evil.= (leftarg = text, rightarg = text, function = evil.same);
      create operator evil.<> (leftarg = text, rightarg = text, function = evil.same);
      create function evil.later(timestamptz, timestamptz) returns boolean language plpgsql
        as $$ begin perform evil.note('>'); return true; end $$;
      create operator evil.> (leftarg = timestamptz, rightarg = timestamptz, function = evil.later);
      create operator evil.<= (leftarg = timestamptz, rightarg = timestamptz, function = evil.later);
      create function evil.less(interval, interval) returns boolean language plpgsql
        as $$ begin perform evil.note('<'); return false; end $$;
      create operator evil.< (leftarg = interval, rightarg = interval, function = evil.less);
      create function evil.more(int, int) returns boolean language plpgsql
        as $$ begin perform evil.note('>'); return false; end $$;
      create operator evil.> (leftarg = int, rightarg = int, function = evil.more);
      create function evil.plus(timestamptz, interval) returns timestamptz language plpgsql
        as $$ begin perform evil.note('+'); return 'infinity'; end $$;
      create operator evil.+ (leftarg = timestamptz, rightarg = interval, function = evil.plus);
      """;

  private final TestDatabase database;

  SearchPathIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void plant() throws SQLException {
    database.update("truncate outbox, outbox_sleepers");
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(LOOK_ALIKES);
    }
  }

  /** Connections whose search path begins with the look-alikes. */
  private PGSimpleDataSource misled(String searchPath) {
    PGSimpleDataSource source = database.plain();
    source.setCurrentSchema(searchPath);
    return source;
  }

  private void assertNothingWasCalled() {
    assertThat(database.list(String.class, "select what from evil.calls")).isEmpty();
    assertThat(database.count("evil.outbox")).isZero();
    assertThat(database.count("evil.outbox_sleepers")).isZero();
  }

  @Test
  void theLookAlikesAreCalledByWhoGoesByTheSearchPath() throws SQLException {
    try (Connection connection = misled("evil,pg_catalog,public").getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("select now(), 'a'::text = 'b'::text, clock_timestamp() + interval '0'");
      statement.execute("insert into outbox (queue, payload) values ('q', 'x')");
    }
    assertThat(database.list(String.class, "select what from evil.calls order by what"))
        .containsExactlyInAnyOrder("now", "=", "clock_timestamp", "+");
    assertThat(database.count("evil.outbox")).isEqualTo(1);
  }

  @Test
  void theFunctionGoesByItsOwnPath() throws SQLException {
    database.update(
        "insert into public.outbox_sleepers values ('q', 's', clock_timestamp() + interval '1 h', false, now())");
    try (Connection connection = misled("pg_temp,evil,pg_catalog,public").getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("create temporary table outbox (like evil.outbox including all)");
      statement.execute(
          "create temporary table outbox_sleepers (like evil.outbox_sleepers including all)");
      statement.execute(
          """
          select public.outbox_publish('q', 'x'::bytea, type => 't', headers => '{"h": "v"}',
            ordering_key => 'k', timer_id => 'timer', deliver_in => '0')
          """);
      statement.execute("select pg_catalog.count(*) from pg_temp.outbox");
      try (var rows = statement.executeQuery("select pg_catalog.count(*) from pg_temp.outbox")) {
        rows.next();
        assertThat(rows.getLong(1)).isZero();
      }
    }
    assertNothingWasCalled();
    assertThat(
            database.one(
                Boolean.class,
                "select available_at < clock_timestamp() and headers = '{\"h\": \"v\"}' from public.outbox"))
        .isTrue();
  }

  @Test
  void everyFunctionThatIsMigratedFixesItsPathAndRunsWithTheCallersRights() {
    assertThat(
            database.list(
                String.class,
                """
                select p.proname || ': ' || coalesce(array_to_string(p.proconfig, ', '), 'no path')
                  || case when p.prosecdef then ', security definer' else '' end
                from pg_proc p where p.pronamespace = 'public'::regnamespace
                """))
        .containsExactly("outbox_publish: search_path=pg_catalog, pg_temp");
  }

  /** The server's own come first unless the path says otherwise, which is the user's to say. */
  @Test
  void statementsOnAQualifiedTableCallNothingElse() throws SQLException {
    PGSimpleDataSource misled = misled("evil,public");
    try (Connection connection = misled.getConnection()) {
      connection.setAutoCommit(false);
      PostgresOutbox.publisher(QUALIFIED)
          .notify(NotifyMode.ALWAYS)
          .build()
          .publish(
              connection,
              List.of(
                  OutboxMessage.to("q").type("t").header("h", "v").body("one").build(),
                  OutboxMessage.to("q").timerId("two").body("two").build(),
                  OutboxMessage.to("q").body("three").build()));
      connection.commit();
    }
    PostgresStore store = PostgresOutbox.on(misled, QUALIFIED).store();
    List<ClaimedRow> rows = store.claim(claim(Idle.awake(Duration.ofSeconds(1)))).rows();
    assertThat(rows)
        .extracting(row -> new String(row.message().payload().bytes(), StandardCharsets.UTF_8))
        .contains("one", "two", "three");
    List<LeaseRef> leases = rows.stream().map(ClaimedRow::lease).toList();
    assertThat(store.renew(leases, Duration.ofSeconds(30)).done()).hasSize(3);
    assertThat(store.ack(leases.subList(0, 1)).done()).hasSize(1);
    assertThat(
            store.retry(List.of(new RetryUpdate(leases.get(1), Duration.ofHours(1), "no"))).done())
        .hasSize(1);
    assertThat(store.release(leases.subList(2, 3)).done()).hasSize(1);
    store.claim(claim(Idle.sleep(Duration.ofSeconds(1), null)));
    store.forget("s");
    assertThat(PostgresOutbox.on(misled, QUALIFIED).depths(List.of("q"))).hasSize(1);
    assertThat(
            PostgresOutbox.on(misled, QUALIFIED)
                .validator()
                .deadLetters("public", "outbox_dlq")
                .checkStorage()
                .checkGrants()
                .checkPublishFunction()
                .validateSchema())
        .hasToString("valid");
    assertNothingWasCalled();
  }

  private static ClaimRequest claim(Idle idle) {
    return new ClaimRequest(
        "q", ClaimRequest.Range.ALL, 10, 1 << 20, Duration.ofSeconds(30), "s", idle, null);
  }
}
