package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Locale;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** Each role can do its job and nothing else; the dead letters are in a schema of their own. */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class GrantsIT {
  private static final String PUBLISH =
      """
      insert into box.outbox (queue, type, ordering_key, payload, headers, available_at, timer_id)
      values ('orders', 't', 'k', 'x', '{}', now(), 'timer-1')
      on conflict (queue, timer_id) where timer_id is not null do nothing returning id, available_at
      """;
  private static final String READ_PAYLOAD = "select payload from box.outbox";
  private static final String CLAIM =
      """
      with picked as materialized (
        select id from box.outbox where queue = 'orders' and available_at <= now()
        order by available_at, id limit 1 for update skip locked)
      update box.outbox o set lease_until = now(), lease_token = lease_token + 1 from picked
      where o.id = picked.id returning o.*
      """;
  private static final String ACK =
      "delete from box.outbox where id = -1 and lease_token = 1 returning id";
  private static final String CANCEL =
      "delete from box.outbox where queue = 'q' and timer_id = 'x' and (lease_until is null or lease_until < now())";
  private static final String DEAD_LETTER =
      """
      with deleted as (delete from box.outbox where id = -1 returning *)
      insert into dead.letters (original_id, queue, type, ordering_key, payload, headers, deliveries_count,
        attempts_count, created_at, failure_reason, last_exception, timer_id)
      select id, queue, type, ordering_key, payload, headers, deliveries_count, attempts_count, created_at, 'rejected',
        null, timer_id from deleted returning original_id
      """;
  private static final String SLEEP =
      """
      insert into box.outbox_sleepers values ('orders', 's', now())
      on conflict (queue, subscriber) do update set wake_at = excluded.wake_at
      """;
  private static final String WAKE = "delete from box.outbox_sleepers where subscriber = 's'";
  private static final String GATE = "select from box.outbox_sleepers where wake_at > now()";
  private static final String BROWSE = "select * from dead.letters";
  private static final String REDRIVE =
      """
      with gone as (delete from dead.letters where id = -1 returning *)
      insert into box.outbox (queue, payload) select queue, payload from gone returning id
      """;
  private static final String MARK = "update dead.letters set redriven_by = 'me'";
  private static final String EMPTY = "truncate box.outbox";
  private static final String SPOIL = "alter table box.outbox add column x int";
  private static final String FUNCTION =
      "select box.outbox_publish('orders', 'x'::bytea, timer_id => 'timer-2')";

  private final TestDatabase database;
  private final String suffix = UUID.randomUUID().toString().substring(0, 8);
  private final OutboxMigrations migrations =
      OutboxMigrations.of("box", "outbox").deadLetters("dead", "letters");

  GrantsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeAll
  void grant() {
    migrations.migrate(database.plain());
    for (String role : new String[] {"pub", "can", "sub", "ops", "none"}) {
      database.update("create role \"%s\" login password 'secret'".formatted(role(role)));
    }
    database.update(migrations.grantsSql(role("pub"), role("sub"), role("ops")));
    database.update(migrations.timerCancellationGrantsSql(role("can")));
  }

  @AfterAll
  void revoke() {
    for (String role : new String[] {"pub", "can", "sub", "ops", "none"}) {
      database.update("drop owned by \"%s\"".formatted(role(role)));
      database.update("drop role \"%s\"".formatted(role(role)));
    }
  }

  private String role(String name) {
    return name + " " + suffix;
  }

  private PGSimpleDataSource as(String role) {
    PGSimpleDataSource source = database.plain();
    source.setUser(role(role));
    source.setPassword("secret");
    return source;
  }

  private void run(String role, String sql) throws SQLException {
    try (Connection connection = as(role).getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  private void may(String role, String... statements) throws SQLException {
    for (String sql : statements) {
      run(role, sql);
    }
  }

  private void mayNot(String role, String... statements) {
    Stream.of(statements)
        .forEach(
            sql ->
                assertThatThrownBy(() -> run(role, sql))
                    .describedAs("%s: %s", role, sql)
                    .isInstanceOfSatisfying(
                        SQLException.class, e -> assertThat(e.getSQLState()).isEqualTo("42501")));
  }

  @Test
  void thePublisherPublishesAndSeesNoPayload() throws SQLException {
    may("pub", PUBLISH, PUBLISH, GATE, FUNCTION, FUNCTION);
    mayNot("pub", READ_PAYLOAD, CLAIM, ACK, CANCEL, SLEEP, WAKE, BROWSE, DEAD_LETTER, EMPTY, SPOIL);
  }

  @Test
  void whoCancelsTimersDeletesAndNothingElse() throws SQLException {
    may("can", CANCEL);
    mayNot("can", PUBLISH, READ_PAYLOAD, CLAIM, FUNCTION, SLEEP, BROWSE, EMPTY, SPOIL);
  }

  @Test
  void theSubscriberClaimsSettlesAndDeadLetters() throws SQLException {
    may("sub", CLAIM, ACK, DEAD_LETTER, SLEEP, SLEEP, WAKE, GATE, READ_PAYLOAD);
    mayNot("sub", PUBLISH, FUNCTION, BROWSE, REDRIVE, MARK, EMPTY, SPOIL);
  }

  @Test
  void theOperatorBrowsesAndRedrives() throws SQLException {
    may("ops", BROWSE, REDRIVE, MARK, PUBLISH, GATE, READ_PAYLOAD);
    mayNot("ops", CLAIM, ACK, DEAD_LETTER, SLEEP, WAKE, FUNCTION, EMPTY, SPOIL);
  }

  @Test
  void anyoneElseDoesNothing() {
    mayNot("none", PUBLISH, READ_PAYLOAD, FUNCTION, BROWSE, GATE);
  }

  @ParameterizedTest
  @ValueSource(strings = {"pub", "sub", "ops"})
  void theValidatorAgrees(String role) {
    OutboxTable table = OutboxTable.named("outbox").inSchema("box");
    SchemaValidator validator = PostgresOutbox.validator(as(role), table).checkPublishFunction();
    validator = role.equals("pub") ? validator : validator.deadLetters("dead", "letters");

    for (OutboxRole asked : OutboxRole.values()) {
      boolean own = asked.name().toLowerCase(Locale.ROOT).startsWith(role.substring(0, 1));
      assertThat(validator.checkGrants(asked).validateSchema().valid())
          .describedAs("%s as %s", role, asked)
          .isEqualTo(own);
    }
  }

  @Test
  void grantsAreRepeatable() {
    database.update(migrations.grantsSql(role("pub"), role("sub"), role("ops")));
  }
}
