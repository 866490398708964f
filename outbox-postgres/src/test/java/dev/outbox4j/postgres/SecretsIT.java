package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.FailureReason;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.RetryUpdate;
import dev.outbox4j.testing.CapturedLogs;
import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Logger;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** No payload, header, URL or password gets into what is thrown, logged or printed. */
@ExtendWith(PostgresExtension.class)
class SecretsIT {
  private static final String SECRET = "S3CRET";
  private static final String SECRET_IN_HEX = "533343524554";

  private final TestDatabase database;
  private CapturedLogs logs;

  SecretsIT(TestDatabase database) {
    this.database = database;
  }

  @BeforeEach
  void capture() {
    logs = new CapturedLogs();
  }

  @AfterEach
  void nothingWasLogged() {
    logs.close();
    assertThat(logs.lines()).noneMatch(line -> line.contains(SECRET));
    database.update("alter table outbox drop constraint if exists refused");
    database.update("truncate outbox");
  }

  private static OutboxMessage message() {
    return OutboxMessage.to("q")
        .type("t")
        .orderingKey("k")
        .header("authorization", SECRET)
        .body(SECRET)
        .build();
  }

  /** What the caller gets to see, all causes included. */
  private static void assertTells(ThrowingCallable work, String expected) {
    Throwable thrown = catchThrowable(work);
    assertThat(thrown).isNotNull();
    assertThat(CapturedLogs.printed(thrown))
        .contains(expected)
        .doesNotContain(SECRET)
        .doesNotContain(SECRET_IN_HEX)
        .doesNotContain("postgresql://");
  }

  @ParameterizedTest
  @EnumSource(PublishApi.class)
  void aMessageThatTheServerRefusesIsNotQuoted(PublishApi api) {
    database.update("alter table outbox add constraint refused check (length(payload) = 0)");
    assertTells(() -> api.publish(database, message()), "refused");
  }

  @ParameterizedTest
  @EnumSource(PublishApi.class)
  void aValueThatDoesNotFitIsNotQuoted(PublishApi api) {
    database.update("alter table outbox alter column type type varchar(3)");
    try {
      OutboxMessage wide =
          OutboxMessage.to("q").type(SECRET).header("h", SECRET).body(SECRET).build();
      assertTells(() -> api.publish(database, wide), "22001");
      database.update("alter table outbox alter column type type text");
      database.update("alter table outbox add constraint refused check (type::int > 0)");
      assertTells(() -> api.publish(database, wide), "22P02");
    } finally {
      database.update("alter table outbox drop constraint if exists refused");
      database.update("alter table outbox alter column type type text");
    }
  }

  @Test
  void aRowThatTheServerRefusesToChangeIsNotQuoted() {
    PublishApi.JDBC.publish(database, message());
    PostgresStore store = PostgresOutbox.on(database.plain(), database.table()).store();
    ClaimedRow row = store.claim(claim()).rows().get(0);
    database.update(
        "alter table outbox add constraint refused check (attempts_count = 0) not valid");
    assertTells(
        () -> store.retry(List.of(new RetryUpdate(row.lease(), Duration.ZERO, SECRET))),
        "violates check constraint \"refused\"");
  }

  /** URLs that no server answers, that no driver understands, and that name a wrong user. */
  private static Stream<String> urls() {
    return Stream.of(
        "jdbc:postgresql://localhost:1/db?user=u&password=" + SECRET,
        "jdbc:postgresql://nobody.invalid/db?user=u&password=" + SECRET,
        "jdbc:postgresql://localhost:port/db?user=u&password=" + SECRET,
        "jdbc:postgresql://u:" + SECRET + "@localhost:1:2/db?password=a " + SECRET,
        "jdbc:nobody's://localhost/db?password=" + SECRET);
  }

  @ParameterizedTest
  @MethodSource("urls")
  void aUrlIsNotQuoted(String url) {
    try (HikariDataSource pool = pool(url)) {
      assertTells(pool);
    }
    assertTells(new ByUrl(url));
    assertListenTells(url);
  }

  private void assertTells(DataSource source) {
    assertTells(
        () -> PostgresOutbox.on(source, database.table()).store().claim(claim()),
        "no connection could be had");
    assertTells(
        () -> PostgresOutbox.on(source, database.table()).depths(List.of("q")),
        "counting queues on outbox failed");
    SchemaValidator validator = PostgresOutbox.on(source, database.table()).validator();
    assertThat(validator.validateSchema().toString())
        .contains("database: expected an answer")
        .doesNotContain(SECRET);
    assertThat(
            PostgresOutbox.on(source, database.table())
                .healthCheck()
                .validator(validator)
                .queues("q")
                .check()
                .toString())
        .doesNotContain(SECRET);
  }

  private void assertListenTells(String url) {
    List<Throwable> causes = new CopyOnWriteArrayList<>();
    try (NotificationSource.Subscription listening =
        PgjdbcListen.on(new ByUrl(url)).listen("c", new Causes(causes))) {
      assertThat(listening).isNotNull();
      await().untilAsserted(() -> assertThat(causes).isNotEmpty());
    }
    assertThat(CapturedLogs.printed(causes.get(0))).doesNotContain(SECRET);
    logs.awaitLine(line -> line.contains("LISTEN on channel c by pgjdbc is out"));
  }

  @Test
  void aWrongPasswordIsNotQuoted() {
    assertTells(
        () ->
            OutboxMigrations.standard()
                .migrate(new ByUrl("jdbc:postgresql://localhost:1/db?password=" + SECRET)),
        "Unable to obtain connection");
  }

  @Test
  void publicTypesPrintNoSecrets() {
    PublishApi.JDBC.publish(database, message());
    PostgresStore store =
        PostgresOutbox.on(pool("jdbc:postgresql://" + SECRET), database.table()).store();
    ClaimedRow row =
        PostgresOutbox.on(database.plain(), database.table()).store().claim(claim()).rows().get(0);
    assertThat(row.message().headers()).containsEntry("authorization", SECRET);
    for (Object printed :
        List.of(
            message(),
            Payload.ofText(SECRET),
            row,
            new DeadLetterEntry(row.lease(), FailureReason.REJECTED, 1, SECRET),
            new RetryUpdate(row.lease(), Duration.ZERO, SECRET),
            store,
            PostgresOutbox.on(store.dataSource(), database.table()).validator(),
            PgjdbcListen.on(new ByUrl(SECRET)))) {
      assertThat(printed.toString()).doesNotContain(SECRET);
    }
  }

  @Test
  void aBodyWithoutACodecIsNotQuoted() {
    record Card(String number) {}
    assertTells(
        () ->
            PublishApi.JDBC.publish(
                database, OutboxMessage.to("q").header("h", SECRET).body(new Card(SECRET)).build()),
        "needs a codec");
    assertTells(() -> OutboxMessage.to("q").header("h", SECRET + "\0"), "header 'h'");
    assertTells(() -> OutboxMessage.to("q").orderingKey(SECRET.repeat(100)), "orderingKey is");
    assertTells(
        () ->
            PublishApi.JDBC.publish(
                database, OutboxMessage.to("q").body(SECRET + "\ud83d").build()),
        "half of a surrogate pair");
  }

  /** A pool as a service makes it, which connects at its first use. */
  private static HikariDataSource pool(String url) {
    HikariDataSource pool = new HikariDataSource();
    pool.setJdbcUrl(url);
    pool.setConnectionTimeout(250);
    return pool;
  }

  private static ClaimRequest claim() {
    return new ClaimRequest(
        "q",
        ClaimRequest.Range.ALL,
        10,
        1 << 20,
        Duration.ofSeconds(30),
        "s",
        ClaimRequest.Idle.UNCHANGED,
        null);
  }

  private record Causes(List<Throwable> causes) implements NotificationSource.Listener {
    @Override
    public void connected() {}

    @Override
    public void notified(String payload) {}

    @Override
    public void disconnected(Throwable cause) {
      causes.add(cause);
    }
  }

  /** The simplest data source there is: it asks the driver manager, whose errors quote the URL. */
  private static final class ByUrl implements DataSource {
    private final String url;

    ByUrl(String url) {
      this.url = url;
    }

    @Override
    public Connection getConnection() throws SQLException {
      return DriverManager.getConnection(url);
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
      return DriverManager.getConnection(url, user, password);
    }

    @Override
    public PrintWriter getLogWriter() {
      return new PrintWriter(PrintWriter.nullWriter());
    }

    @Override
    public void setLogWriter(PrintWriter out) {}

    @Override
    public void setLoginTimeout(int seconds) {}

    @Override
    public int getLoginTimeout() {
      return 0;
    }

    @Override
    public Logger getParentLogger() throws SQLFeatureNotSupportedException {
      throw new SQLFeatureNotSupportedException();
    }

    @Override
    public <T> T unwrap(Class<T> type) throws SQLException {
      throw new SQLException("no wrapper");
    }

    @Override
    public boolean isWrapperFor(Class<?> type) {
      return false;
    }
  }
}
