package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;

/** The SQL function, as triggers and other languages use it. */
@ExtendWith(PostgresExtension.class)
class PublishFunctionIT {
  private final TestDatabase database;

  PublishFunctionIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void empty() {
    database.update("truncate outbox, outbox_sleepers");
  }

  private Long publish(String arguments) {
    return database.one(Long.class, "select outbox_publish(" + arguments + ")");
  }

  private <T> T column(Class<T> type, String expression) {
    return database.one(type, "select " + expression + " from outbox");
  }

  @Test
  void publishesWithTheDefaults() {
    long id = publish("'orders', 'x'");
    assertThat(
            column(
                String.class,
                "row(id, queue, payload, type, headers, ordering_key, timer_id, lease_token)::text"))
        .isEqualTo("(" + id + ",orders,\"\\\\x78\",,{},,,0)");
    assertThat(column(Boolean.class, "available_at between created_at and clock_timestamp()"))
        .isTrue();
  }

  @Test
  void takesNamedArguments() {
    publish(
        "timer_id => 't', ordering_key => 'k', headers => '{\"a\":\"b\"}', type => 'order.placed',"
            + " payload => '\\x00ff', queue => 'orders', deliver_at => '2031-03-04 05:06:07.123456Z'");
    assertThat(
            column(
                String.class,
                "row(queue, payload, type, headers, ordering_key, timer_id, available_at at time zone 'UTC')::text"))
        .isEqualTo(
            "(orders,\"\\\\x00ff\",order.placed,\"{\"\"a\"\": \"\"b\"\"}\",k,t,\"2031-03-04 05:06:07.123456\")");
  }

  @Test
  void publishesFromSqlAloneAsMuchAsFromJava() {
    publish(
        "'q', convert_to('Zoë', 'UTF8'), headers => jsonb_build_object('content-type', 'text/plain; charset=utf-8')");
    String fromSql =
        column(String.class, "row(queue, payload, headers, lease_until, timer_id)::text");
    empty();
    PublishApi.JDBC.publish(database, dev.outbox4j.OutboxMessage.to("q").body("Zoë").build());
    assertThat(column(String.class, "row(queue, payload, headers, lease_until, timer_id)::text"))
        .isEqualTo(fromSql);
  }

  @Test
  void makesTextOfHeaderValuesAndLeavesNullsOut() {
    publish(
        "'q', '', headers => '{\"n\":1,\"b\":true,\"o\":{\"x\":[1]},\"null\":null,\"s\":\"\"}'");
    assertThat(column(String.class, "headers::text"))
        .isEqualTo("{\"b\": \"true\", \"n\": \"1\", \"o\": \"{\\\"x\\\": [1]}\", \"s\": \"\"}");
    empty();
    publish("'q', '', headers => null");
    assertThat(column(String.class, "headers::text")).isEqualTo("{}");
  }

  @Test
  void delaysByTheServersClock() {
    publish("'q', '', deliver_in => interval '2 hours'");
    assertThat(
            column(
                Boolean.class,
                "available_at between created_at + interval '2 hours' and clock_timestamp() + interval '2 hours'"))
        .isTrue();
  }

  @Test
  void keepsOneLiveRowForATimerId() {
    assertThat(publish("'q', '', timer_id => 't'")).isNotNull();
    assertThat(publish("'q', '', timer_id => 't'")).isNull();
    assertThat(publish("'r', '', timer_id => 't'")).isNotNull();
    assertThat(publish("'q', ''")).isNotNull();
    assertThat(publish("'q', ''")).isNotNull();
    assertThat(database.count("outbox")).isEqualTo(4);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "null, ''|queue is null; give it a name",
        "'', ''|queue is blank; give it a name",
        "e' \\t\\n\\r', ''|queue is blank; give it a name",
        "repeat('x', 256), ''|queue is 256 bytes long; at most 255 are allowed",
        "repeat('ë', 128), ''|queue is 256 bytes long; at most 255 are allowed",
        "'q', null|payload is null; give at least an empty one",
        "'q', '', type => ' '|type is blank; give it a name",
        "'q', '', ordering_key => repeat('x', 256)|ordering_key is 256 bytes long; at most 255 are allowed",
        "'q', '', timer_id => ''|timer_id is blank; give it a name",
        "'q', '', headers => '[]'|headers is a JSON array; it must be an object",
        "'q', '', headers => 'null'|headers is a JSON null; it must be an object",
        "'q', '', options => '{\"ttl\":1}'|option ttl is not known to this version; leave it out",
        "'q', '', options => '{\"expires_in\":\"0\"}'|expires_in is 0; it must be more than zero",
        "'q', '', options => '{\"expires_in\":\"1 h\",\"expires_at\":\"2031-01-01\"}'|expires_in and expires_at are both set; set one of them",
        "'q', '', deliver_at => '2031-01-02+00', options => '{\"expires_at\":\"2031-01-02+00\"}'|expires_at is 2031-01-02 00:00:00+00 and deliver_at is 2031-01-02 00:00:00+00; a message must expire after it is due",
        "'q', '', options => '[]'|options is a JSON array; it must be an object",
        "'q', '', deliver_in => '1 s', deliver_at => now()|deliver_in and deliver_at are both set; set one of them",
        "'q', '', deliver_in => '-1 s'|deliver_in is -00:00:01; it must be zero or more",
        "'q', '', deliver_at => 'infinity'|the message would be due at infinity; it must be at a finite instant",
        "'q', '', deliver_at => '-infinity'|the message would be due at -infinity; it must be at a finite instant"
      })
  void refusesBadArguments(String arguments, String message) {
    assertThatThrownBy(() -> publish(arguments))
        .hasRootCauseInstanceOf(SQLException.class)
        .rootCause()
        .hasMessageStartingWith("ERROR: " + message)
        .satisfies(e -> assertThat(((SQLException) e).getSQLState()).isEqualTo("22023"));
    assertThat(database.count("outbox")).isZero();
  }

  @Test
  void takesNamesUpTo255Bytes() {
    assertThat(publish("repeat('x', 255), '', repeat('y', 255), null, repeat('ë', 127)"))
        .isNotNull();
  }

  @Test
  void notifiesOnlySleepersThatWouldWakeTooLate() throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("listen outbox_outbox");
      statement.execute("select outbox_publish('q', '')");
      database.update(
          "insert into outbox_sleepers values ('q', 's', now() + interval '1 minute', false, now()), ('r', 's', now(), false, now())");
      statement.execute("select outbox_publish('q', '', deliver_in => '2 minutes')");
      statement.execute("select outbox_publish('r', '')");
      statement.execute("begin");
      statement.execute("select outbox_publish('q', 'rolled back')");
      statement.execute("rollback");
      statement.execute("select outbox_publish('q', 'timer', timer_id => 't')");
      statement.execute("select outbox_publish('q', 'duplicate', timer_id => 't')");
      statement.execute("select pg_notify('outbox_outbox', 'end')");
      assertThat(connection.unwrap(PGConnection.class).getNotifications(5_000))
          .extracting(n -> n.getParameter())
          .containsExactly("q", "end");
    }
  }

  @Test
  void storesWhenAMessageExpires() {
    Long in =
        publish("'q', '', deliver_in => '1 h', options => '{\"expires_in\": \"10 minutes\"}'");
    Long at = publish("'q', '', options => '{\"expires_at\": \"2031-03-04 05:06:07+00\"}'");
    assertThat(
            database.one(
                Boolean.class,
                "select expires_at = available_at + interval '10 minutes' from outbox where id = ?",
                in))
        .isTrue();
    assertThat(
            database.one(
                Boolean.class,
                "select expires_at = '2031-03-04 05:06:07+00' from outbox where id = ?",
                at))
        .isTrue();
  }

  @Test
  void takesOptionsOfNothing() {
    assertThat(publish("'q', '', options => '{}'")).isNotNull();
    assertThat(publish("'q', '', options => null")).isNotNull();
  }

  @ParameterizedTest
  @ValueSource(strings = {"read committed", "serializable"})
  void notifiesNobodyInATransactionThatSaysSo(String isolation) throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("listen outbox_outbox");
      database.update("insert into outbox_sleepers values ('q', 's', 'infinity', true, now())");
      statement.execute("begin transaction isolation level " + isolation);
      statement.execute("set local outbox4j.notify = 'off'");
      statement.execute("select outbox_publish('q', 'silent')");
      statement.execute("commit");
      statement.execute("select outbox_publish('q', 'aloud')");
      statement.execute("select pg_notify('outbox_outbox', 'end')");
      assertThat(connection.unwrap(PGConnection.class).getNotifications(5_000))
          .extracting(n -> n.getParameter())
          .containsExactly("q", "end");
    }
    assertThat(database.count("outbox")).isEqualTo(2);
  }

  @Test
  void publishesFromATriggerInTheSameTransaction() throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("create table orders (id bigint, type text, queue text)");
      statement.execute(
          """
          create function order_placed() returns trigger language plpgsql as $$
          begin
            perform outbox_publish('orders', convert_to(to_jsonb(new)::text, 'UTF8'), new.type,
              headers => jsonb_build_object('content-type', 'application/json', 'tenant', null));
            return new;
          end $$
          """);
      statement.execute(
          "create trigger publish after insert on orders for each row execute function order_placed()");
      connection.setAutoCommit(false);
      statement.execute("insert into orders values (1, 'order.placed', 'x'), (2, null, 'y')");
      connection.rollback();
      assertThat(database.count("outbox")).isZero();
      statement.execute("insert into orders values (1, 'order.placed', 'x'), (2, null, 'y')");
      connection.commit();
    }
    assertThat(
            database.list(
                String.class,
                "select coalesce(type, '-') || convert_from(payload, 'UTF8') || headers from outbox order by id"))
        .containsExactly(
            "order.placed{\"id\": 1, \"type\": \"order.placed\", \"queue\": \"x\"}{\"content-type\": \"application/json\"}",
            "-{\"id\": 2, \"type\": null, \"queue\": \"y\"}{\"content-type\": \"application/json\"}");
  }

  @ParameterizedTest
  @ValueSource(strings = {"hostile, public, pg_catalog", "hostile", "hostile, pg_catalog, pg_temp"})
  void isNotMisledByTheCallersSearchPath(String path) throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement()) {
      connection.setAutoCommit(false);
      statement.execute("create schema hostile");
      for (String function :
          new String[] {
            "clock_timestamp() returns timestamptz",
            "btrim(text, text) returns text",
            "octet_length(bytea) returns int",
            "pg_notify(text, text) returns void",
            "isfinite(timestamptz) returns boolean",
            "jsonb_typeof(jsonb) returns text"
          }) {
        statement.execute(
            "create function hostile."
                + function
                + " language plpgsql as $$begin raise exception 'hostile'; end$$");
      }
      statement.execute("create table hostile.outbox (like public.outbox)");
      statement.execute("create table hostile.outbox_sleepers (like public.outbox_sleepers)");
      statement.execute("create temporary table outbox (like public.outbox)");
      statement.execute("set local search_path = " + path);
      statement.execute("select public.outbox_publish('q', '', timer_id => 't')");
      try (var rows =
          statement.executeQuery(
              "select (select count(*) from public.outbox), (select count(*) from hostile.outbox), current_setting('search_path')")) {
        rows.next();
        assertThat(rows.getLong(1)).isEqualTo(1);
        assertThat(rows.getLong(2)).isZero();
        assertThat(rows.getString(3)).isEqualTo(path);
      }
      connection.rollback();
    }
  }

  @Test
  void worksInAnotherSchemaWithAnOddName() {
    database.update("create schema \"Other schéma\"");
    OutboxMigrations.of("Other schéma", "Odd name-1").migrate(database.plain());
    assertThat(
            database.one(
                Long.class,
                "select \"Other schéma\".\"Odd name-1_publish\"(queue => 'q', payload => '', timer_id => 't')"))
        .isEqualTo(1);
    assertThat(database.count("\"Other schéma\".\"Odd name-1\"")).isEqualTo(1);
    assertThat(database.count("outbox")).isZero();
  }
}
