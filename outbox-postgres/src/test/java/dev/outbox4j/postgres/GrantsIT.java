package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.jooq.JooqOutboxPublisher;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimRequest.Idle;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.OutboxStore;
import dev.outbox4j.spi.RescheduleUpdate;
import dev.outbox4j.spi.RetryUpdate;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.UUID;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;
import reactor.core.publisher.Mono;

/** Each role can do its job and nothing else; the dead letters are in a schema of their own. */
@ExtendWith(PostgresExtension.class)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class GrantsIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox").inSchema("box");

  private static final String PUBLISH =
      "insert into box.outbox (queue, payload) values ('orders', 'x')";
  private static final String PUBLISH_LEASED =
      "insert into box.outbox (queue, payload, lease_until) values ('orders', 'x', 'infinity')";
  private static final String PUBLISH_AGAIN =
      "insert into box.outbox (queue, payload, id, lease_token) values ('orders', 'x', -1, 4)";
  private static final String READ_PAYLOAD = "select payload from box.outbox";
  private static final String READ_HEADERS = "select headers from box.outbox";
  private static final String LOCK_ROW = "select id from box.outbox for update";
  private static final String CLAIM = "update box.outbox set lease_token = lease_token + 1";
  private static final String FORGE = "update box.outbox set payload = 'forged'";
  private static final String REROUTE = "update box.outbox set queue = 'other', type = 'other'";
  private static final String ACK = "delete from box.outbox where id = -1";
  private static final String SLEEP =
      "insert into box.outbox_sleepers values ('q', 's', now(), false, now())";
  private static final String WAKE = "delete from box.outbox_sleepers where subscriber = 's'";
  private static final String STAY_AWAKE = "update box.outbox_sleepers set wake_at = now()";
  private static final String WHO_SLEEPS = "select subscriber from box.outbox_sleepers";
  private static final String COUNT_FOR_ALL =
      """
      insert into box.outbox_sleepers as s (queue, subscriber, wake_at, until)
      values ('', 'depths', '-infinity', now())
      on conflict (queue, subscriber) do update set until = excluded.until where s.until < now()
      """;
  private static final String BROWSE = "select id from dead.letters";
  private static final String BURY =
      """
      insert into dead.letters (outbox, original_id, lease_token, queue, payload, deliveries_count,
        attempts_count, created_at, available_at, failure_reason)
      values ('box.outbox', 1, 1, 'q', 'x', 1, 1, now(), now(), 'rejected')
      """;
  private static final String BURY_RESOLVED =
      """
      insert into dead.letters (outbox, original_id, lease_token, queue, payload, deliveries_count,
        attempts_count, created_at, available_at, failure_reason, resolved_at)
      values ('box.outbox', 1, 1, 'q', 'x', 1, 1, now(), now(), 'rejected', now())
      """;
  private static final String MARK =
      "update dead.letters set resolved_at = now(), resolved_by = 'me', resolution = 'redriven'";
  private static final String REWRITE = "update dead.letters set payload = 'x'";
  private static final String REROUTE_LETTER =
      "update dead.letters set queue = 'other', ordering_key = 'other'";
  private static final String TAKE_BACK_A_COUNT = "update dead.letters set redrives_count = 0";
  private static final String BROWSE_WHOLE = "select payload from dead.letters";
  private static final String PURGE = "delete from dead.letters where id = -1";
  private static final String FUNCTION = "select box.outbox_publish('orders', 'x'::bytea)";

  /** What none of them may. */
  private static final String[] OWNERS = {
    "truncate box.outbox",
    "truncate box.outbox_sleepers",
    "truncate dead.letters",
    "alter table box.outbox add column x int",
    "alter table dead.letters disable trigger all",
    "drop table box.outbox",
    "drop function box.outbox_publish",
    "drop index box.outbox_claim_idx",
    "create table box.mine (x int)",
    "create index on box.outbox (type)",
    "create trigger mine before insert on box.outbox for each row execute function"
        + " suppress_redundant_updates_trigger()",
    "select setval('box.outbox_id_seq', 1)",
    "select * from box.outbox_schema_history",
    "select * from dead.letters_schema_history",
    "set role postgres"
  };

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
    for (String role : new String[] {"pub", "can", "rep", "sub", "ops", "none"}) {
      database.update("create role \"%s\" login password 'secret'".formatted(role(role)));
    }
    database.update(migrations.grantsSql(role("pub"), role("sub"), role("ops")));
    database.update(migrations.timerCancellationGrantsSql(role("can")));
    database.update(migrations.grantsSql(role("rep"), role("sub"), role("ops")));
    database.update(migrations.timerReplacementGrantsSql(role("rep")));
  }

  @AfterAll
  void revoke() {
    for (String role : new String[] {"pub", "can", "rep", "sub", "ops", "none"}) {
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

  /** By the publisher itself, in each of its ways. */
  private List<Published> publish(String role, NotifyMode mode, OutboxMessage... messages)
      throws SQLException {
    return publish(role, mode, List.of(messages));
  }

  private List<Published> publish(String role, NotifyMode mode, Collection<OutboxMessage> messages)
      throws SQLException {
    try (Connection connection = as(role).getConnection()) {
      connection.setAutoCommit(false);
      List<Published> published =
          PostgresOutbox.publisher(TABLE).notify(mode).build().publish(connection, messages);
      connection.commit();
      return published;
    }
  }

  private static OutboxMessage message(String queue) {
    return OutboxMessage.to(queue).type("t").orderingKey("k").header("h", "v").body("x").build();
  }

  @ParameterizedTest
  @EnumSource(NotifyMode.class)
  void thePublisherPublishes(NotifyMode mode) throws SQLException {
    for (PublishShape shape : PublishShape.values()) {
      OutboxMessage keyed = shape.timer(OutboxMessage.to("timed"), mode.name()).body("x").build();
      List<Published> published =
          shape.publish(
              List.of(
                  message("orders"),
                  keyed,
                  OutboxMessage.to("orders").deliverIn(Duration.ofHours(1)).build()),
              messages -> asPublisher(mode, messages));
      assertThat(published).hasSize(3).allMatch(each -> each.rowId().isPresent());
    }
    OutboxMessage again = OutboxMessage.to("timed").timerId(mode.name()).build();
    assertThat(publish("pub", mode, again)).noneMatch(each -> each.rowId().isPresent());
  }

  private List<Published> asPublisher(NotifyMode mode, Collection<OutboxMessage> messages) {
    try {
      return publish("pub", mode, messages);
    } catch (SQLException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void thePublisherPublishesByOthersMeansToo() throws SQLException {
    DSL.using(as("pub"), SQLDialect.POSTGRES)
        .transaction(
            tx ->
                JooqOutboxPublisher.of(PostgresOutbox.publisher(TABLE).build())
                    .publish(tx, message("by-jooq")));
    ReactiveOutboxPublisher reactive = PostgresOutbox.publisher(TABLE).buildReactive();
    Mono.usingWhen(
            r2dbc("pub").create(),
            connection ->
                connection
                    .beginTransaction()
                    .then(Mono.from(reactive.publish(connection, message("by-r2dbc"))))
                    .then(connection.commitTransaction()),
            PostgresqlConnection::close)
        .block(Duration.ofSeconds(30));
    may("pub", FUNCTION);
    assertThat(count("select count(*) from box.outbox where queue like 'by-%'")).isEqualTo(2);
  }

  private PostgresqlConnectionFactory r2dbc(String role) {
    return new PostgresqlConnectionFactory(
        PostgresqlConnectionConfiguration.builder()
            .host(database.server().host())
            .port(database.server().port())
            .database(database.name())
            .username(role(role))
            .password("secret")
            .build());
  }

  private long count(String sql) {
    return database.one(Long.class, sql);
  }

  @Test
  void thePublisherDoesNothingElse() {
    mayNot("pub", OWNERS);
    mayNot("pub", READ_PAYLOAD, READ_HEADERS, LOCK_ROW, CLAIM, FORGE, REROUTE, ACK);
    mayNot("pub", PUBLISH_LEASED, PUBLISH_AGAIN);
    mayNot("pub", SLEEP, WAKE, STAY_AWAKE, WHO_SLEEPS, COUNT_FOR_ALL, BROWSE, BURY, MARK, PURGE);
    OutboxStore store = PostgresOutbox.on(as("pub"), TABLE).store();
    refused(() -> store.claim(claim("orders", Idle.UNCHANGED)));
    refused(() -> store.ack(List.of(new LeaseRef("orders", 1, 1))));
    refused(() -> cancel("pub", "orders", "t"));
    refused(() -> PostgresOutbox.on(as("pub"), TABLE).depths(List.of("orders")));
  }

  @Test
  void whoCancelsTimersDeletesAndNothingElse() throws SQLException {
    publish("pub", NotifyMode.NEVER, OutboxMessage.to("cancelled").timerId("t").build());
    assertThat(cancel("can", "cancelled", "t")).isTrue();
    mayNot("can", OWNERS);
    mayNot("can", PUBLISH, READ_PAYLOAD, CLAIM, FORGE, FUNCTION, SLEEP, BROWSE);
    refused(() -> publish("can", NotifyMode.NEVER, message("cancelled")));
  }

  @ParameterizedTest
  @EnumSource(NotifyMode.class)
  void whoReplacesTimersPublishesInThePlaceOfLiveOnes(NotifyMode mode) throws SQLException {
    String queue = "replaced-" + mode;
    OutboxMessage message = OutboxMessage.to(queue).timerId("t", IfLive.REPLACE).body("x").build();
    refused(() -> publish("pub", mode, message));
    publish("rep", mode, message);
    OutboxStore store = PostgresOutbox.on(as("sub"), TABLE).store();
    LeaseRef lease = store.claim(claim(queue, Idle.UNCHANGED)).rows().get(0).lease();
    publish("rep", mode, message);
    assertThat(store.ack(List.of(lease)).replaced()).containsExactly(lease.id());
    assertThat(store.claim(claim(queue, Idle.UNCHANGED)).rows()).hasSize(1);
    may(
        "rep",
        "select box.outbox_publish('%s', 'x', timer_id => 'u', options => '{\"if_live\": \"replace\"}')"
            .formatted(queue));
    mayNot("rep", OWNERS);
    mayNot("rep", REROUTE, ACK, PUBLISH_LEASED, PUBLISH_AGAIN, SLEEP);
  }

  private boolean cancel(String role, String queue, String timerId) throws SQLException {
    try (Connection connection = as(role).getConnection()) {
      connection.setAutoCommit(false);
      boolean cancelled =
          PostgresOutbox.publisher(TABLE).build().cancelTimer(connection, queue, timerId);
      connection.commit();
      return cancelled;
    }
  }

  @Test
  void theSubscriberClaimsAndSettles() throws SQLException {
    for (int i = 0; i < 5; i++) {
      publish("pub", NotifyMode.AUTO, message("claimed"));
    }
    OutboxStore store = PostgresOutbox.on(as("sub"), TABLE).store();
    store.claim(claim("nothing", Idle.sleep(Duration.ofSeconds(1), null)));
    store.claim(claim("nothing", Idle.LOOK_AHEAD));
    List<LeaseRef> leases =
        store.claim(claim("claimed", Idle.awake(Duration.ofSeconds(1)))).rows().stream()
            .map(ClaimedRow::lease)
            .toList();
    assertThat(leases).hasSize(5);
    assertThat(store.renew(leases, Duration.ofSeconds(30)).done()).hasSize(5);
    assertThat(store.ack(leases.subList(0, 1)).done()).hasSize(1);
    assertThat(store.retry(List.of(new RetryUpdate(leases.get(1), Duration.ZERO, "no"))).done())
        .hasSize(1);
    assertThat(store.reschedule(List.of(new RescheduleUpdate(leases.get(2), Duration.ZERO))).done())
        .hasSize(1);
    assertThat(store.release(leases.subList(3, 5)).done()).hasSize(2);
    assertThatCode(() -> store.forget("s")).doesNotThrowAnyException();
    assertThat(PostgresOutbox.on(as("sub"), TABLE).depths(List.of("claimed")).get(0).ready())
        .isEqualTo(4);
  }

  @Test
  void theSubscriberDoesNothingElse() {
    mayNot("sub", OWNERS);
    mayNot("sub", PUBLISH, FUNCTION, FORGE, REROUTE);
    mayNot("sub", BROWSE_WHOLE, BURY_RESOLVED, MARK, REROUTE_LETTER, PURGE, TAKE_BACK_A_COUNT);
    refused(() -> publish("sub", NotifyMode.NEVER, message("orders")));
  }

  @Test
  void theSubscriberWritesAnewWhatALetterHoldsAndNotWhoDidWhat() throws SQLException {
    may("sub", REWRITE, "update dead.letters set resolved_at = null, failure_reason = 'rejected'");
    mayNot("sub", MARK, "update dead.letters set resolved_by = null");
    mayNot("sub", "update dead.letters set resolution = null");
    mayNot("sub", "select from dead.letters_trips", "select from dead.letters_audit");
  }

  @Test
  void theOperatorLooksAndRedrives() throws SQLException {
    may("ops", BROWSE, MARK, PURGE, PUBLISH, PUBLISH_AGAIN, READ_PAYLOAD, WHO_SLEEPS);
    assertThat(PostgresOutbox.on(as("ops"), TABLE).depths(List.of("orders"))).hasSize(1);
    may("ops", COUNT_FOR_ALL);
  }

  @Test
  void theOperatorDoesNothingElse() {
    mayNot("ops", OWNERS);
    mayNot("ops", LOCK_ROW, CLAIM, FORGE, ACK, PUBLISH_LEASED, FUNCTION);
    mayNot("ops", SLEEP, WAKE, STAY_AWAKE, BURY, REWRITE);
    OutboxStore store = PostgresOutbox.on(as("ops"), TABLE).store();
    refused(() -> store.claim(claim("orders", Idle.UNCHANGED)));
  }

  @Test
  void anyoneElseDoesNothing() {
    mayNot("none", OWNERS);
    mayNot("none", PUBLISH, READ_PAYLOAD, ACK, WHO_SLEEPS, BROWSE, BURY, FUNCTION);
    refused(() -> publish("none", NotifyMode.NEVER, message("orders")));
    refused(
        () -> PostgresOutbox.on(as("none"), TABLE).store().claim(claim("orders", Idle.UNCHANGED)));
  }

  private static ClaimRequest claim(String queue, Idle idle) {
    return new ClaimRequest(
        queue, ClaimRequest.Range.ALL, 10, 1 << 20, Duration.ofSeconds(30), "s", idle, null);
  }

  private static void refused(ThrowableAssert.ThrowingCallable work) {
    assertThatThrownBy(work)
        .isInstanceOfSatisfying(
            OutboxStoreException.class,
            e -> {
              assertThat(e.fault()).isEqualTo(OutboxStoreException.Fault.SETUP);
              assertThat(((SQLException) e.getCause()).getSQLState()).isEqualTo("42501");
            });
  }

  @ParameterizedTest
  @ValueSource(strings = {"pub", "sub", "ops"})
  void theValidatorAgrees(String role) {
    SchemaValidator validator =
        PostgresOutbox.on(as(role), TABLE).validator().checkPublishFunction();
    validator = role.equals("pub") ? validator : validator.deadLetters("dead", "letters");

    for (OutboxRole asked : OutboxRole.values()) {
      boolean own = asked.name().toLowerCase(Locale.ROOT).startsWith(role.substring(0, 1));
      assertThat(validator.checkGrants(asked).validateSchema().valid())
          .describedAs("%s as %s", role, asked)
          .isEqualTo(own);
    }
  }

  @Test
  void theValidatorAddsUpWhatARoleIsThereFor() {
    SchemaValidator both =
        PostgresOutbox.on(as("sub"), TABLE)
            .validator()
            .deadLetters("dead", "letters")
            .checkGrants(OutboxRole.PUBLISHER)
            .checkGrants(OutboxRole.SUBSCRIBER);
    assertThat(both.validateSchema().faults().toString()).contains("insert (");
    SchemaValidator reversed =
        PostgresOutbox.on(as("pub"), TABLE)
            .validator()
            .checkGrants(OutboxRole.SUBSCRIBER)
            .checkGrants(OutboxRole.PUBLISHER);
    assertThat(reversed.validateSchema().faults().toString()).contains("delete");
  }

  @Test
  void grantsAreRepeatable() {
    database.update(migrations.grantsSql(role("pub"), role("sub"), role("ops")));
  }
}
