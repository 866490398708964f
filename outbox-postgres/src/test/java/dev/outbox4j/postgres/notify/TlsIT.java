package dev.outbox4j.postgres.notify;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.OutboxStoreException;
import dev.outbox4j.migrations.OutboxMigrations;
import dev.outbox4j.postgres.NotifyMode;
import dev.outbox4j.postgres.OutboxRole;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.testing.TlsServer;
import dev.outbox4j.postgres.testing.TlsServer.Shown;
import dev.outbox4j.spi.ClaimRequest;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.NotificationSource.Subscription;
import dev.outbox4j.testing.CapturedLogs;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * The pool and each LISTEN source against a server that takes TLS and scram-sha-256 only, with the
 * options that {@code docs/operations/security.md} names.
 */
class TlsIT {
  private static final OutboxTable TABLE = OutboxTable.named("outbox");
  private static final String SECRET = "S3CRET";

  @TempDir static Path folder;
  private static TlsServer server;

  private CapturedLogs logs;

  @BeforeAll
  static void start() throws Exception {
    server = TlsServer.start(folder);
    OutboxMigrations.standard().migrate(server.verified());
  }

  @AfterAll
  static void stop() throws Exception {
    server.close();
  }

  @BeforeEach
  void capture() {
    logs = new CapturedLogs();
  }

  @AfterEach
  void nothingTold() {
    logs.close();
    assertThat(logs.lines()).noneMatch(line -> line.contains(SECRET));
  }

  @Test
  void theServerIsAsStrictAsItShouldBe() {
    assertThat(server.one("select rolpassword from pg_authid where rolname = 'postgres'"))
        .startsWith("SCRAM-SHA-256$");
    assertThat(
            server.one("select string_agg(type || ' ' || auth_method, ',') from pg_hba_file_rules"))
        .isEqualTo("hostssl scram-sha-256");
    assertThatThrownBy(() -> server.plain().getConnection())
        .isInstanceOf(SQLException.class)
        .hasMessageContaining(unencrypted());
  }

  @Test
  void thePoolPublishesClaimsAndValidates() throws SQLException {
    try (HikariDataSource pool = pool(server.verified())) {
      assertThat(
              PostgresOutbox.on(pool, TABLE)
                  .validator()
                  .deadLetters("outbox_dlq")
                  .checkGrants(OutboxRole.SUBSCRIBER)
                  .validateSchema())
          .hasToString("valid");
      publish(pool, "pooled");
      PostgresStore store = PostgresOutbox.on(pool, TABLE).store();
      assertThat(store.claim(claim("pooled")).rows()).hasSize(1);
      assertThat(PostgresOutbox.on(pool, TABLE).depths(List.of("pooled")).get(0).leased())
          .isEqualTo(1);
      try (Connection connection = pool.getConnection();
          var statement = connection.createStatement();
          var row =
              statement.executeQuery(
                  "select ssl and version like 'TLSv1._' from pg_stat_ssl where pid = pg_backend_pid()")) {
        row.next();
        assertThat(row.getBoolean(1)).isTrue();
      }
    }
  }

  @Test
  void thePoolIsRefusedWithoutTlsByAStrangersCertificateAndByAWrongPassword() {
    PGSimpleDataSource wrongRoot = server.verified();
    wrongRoot.setSslRootCert(server.strangersCertificate());
    PGSimpleDataSource wrongPassword = server.verified();
    wrongPassword.setPassword("wrong " + SECRET);

    refused(server.plain(), unencrypted());
    refused(wrongRoot, "SSL error");
    refused(wrongPassword, "password authentication failed for user \"postgres\"");
  }

  @Test
  void thePoolRefusesAServerOfAnotherName() {
    server.show(Shown.OF_ANOTHER_NAME);
    try {
      refused(server.verified(), "could not be verified by hostnameverifier");
    } finally {
      server.show(Shown.USUAL);
    }
  }

  /** The store, the counts and the validator say why, and never the password. */
  private static void refused(PGSimpleDataSource source, String why) {
    try (HikariDataSource pool = pool(source)) {
      PostgresStore store = PostgresOutbox.on(pool, TABLE).store();
      // until the pool has heard why, it only says that its time is over
      await()
          .untilAsserted(
              () ->
                  assertThatThrownBy(() -> store.claim(claim("q")))
                      .isInstanceOfSatisfying(
                          OutboxStoreException.class,
                          e -> {
                            assertThat(e.outcomeUnknown()).isFalse();
                            assertThat(CapturedLogs.printed(e))
                                .contains(why)
                                .doesNotContain(SECRET);
                          }));
      await()
          .untilAsserted(
              () ->
                  assertThatThrownBy(() -> PostgresOutbox.on(pool, TABLE).depths(List.of("q")))
                      .isInstanceOfSatisfying(
                          OutboxStoreException.class,
                          e ->
                              assertThat(CapturedLogs.printed(e))
                                  .contains(why)
                                  .doesNotContain(SECRET)));
      assertThat(PostgresOutbox.on(pool, TABLE).validator().validateSchema().toString())
          .contains("database: expected an answer")
          .doesNotContain(SECRET);
    }
  }

  @ParameterizedTest
  @EnumSource(SecureSource.class)
  void aSourceListensByTls(SecureSource kind) throws SQLException {
    listens(kind);
  }

  @ParameterizedTest
  @EnumSource(value = SecureSource.class, names = "PGJDBC_NG", mode = EnumSource.Mode.EXCLUDE)
  void aSourceListensToAServerWhoseCertificateIsSignedWithSha384(SecureSource kind)
      throws SQLException {
    server.show(Shown.BY_SHA_384);
    try {
      listens(kind);
    } finally {
      server.show(Shown.USUAL);
    }
  }

  @Test
  void pgjdbcNgSaysWhyItCannotLogInWhereTheCertificateIsSignedWithSha384() {
    server.show(Shown.BY_SHA_384);
    try {
      refused(
          verified(SecureSource.PGJDBC_NG, "localhost", server.rootCertificate()),
          "pgjdbc-ng can log in only if the server's certificate is signed with SHA-256");
    } finally {
      server.show(Shown.USUAL);
    }
  }

  private static void listens(SecureSource kind) throws SQLException {
    RecordingListener listener = new RecordingListener();
    NotificationSource source = verified(kind, "localhost", server.rootCertificate());
    try (Subscription listening = source.listen(TABLE.channel(), listener);
        HikariDataSource pool = pool(server.verified())) {
      assertThat(listening).isNotNull();
      await().untilAsserted(() -> assertThat(listener.count(RecordingListener.UP)).isEqualTo(1));
      publish(pool, "heard");
      await().untilAsserted(() -> assertThat(listener.payloads()).contains("heard"));
      assertThat(
              server.one(
                  """
                  select string_agg(s.ssl::text, ',') from pg_stat_activity a
                  join pg_stat_ssl s using (pid) where a.application_name = 'outbox4j-listen'
                  """))
          .isEqualTo("true");
    }
    await()
        .untilAsserted(
            () ->
                assertThat(
                        server.one(
                            "select count(*) from pg_stat_activity where application_name = 'outbox4j-listen'"))
                    .isEqualTo("0"));
  }

  @ParameterizedTest
  @EnumSource(SecureSource.class)
  void aSourceWithoutTlsIsRefused(SecureSource kind) {
    refused(kind.plain("localhost", server.port(), "postgres", TlsServer.PASSWORD), unencrypted());
  }

  @ParameterizedTest
  @EnumSource(SecureSource.class)
  void aSourceRefusesAServerThatAStrangerVouchesFor(SecureSource kind) {
    refused(
        verified(kind, "localhost", server.strangersCertificate()), "unable to find valid cert");
  }

  @ParameterizedTest
  @EnumSource(SecureSource.class)
  void aSourceRefusesAServerOfAnotherName(SecureSource kind) {
    server.show(Shown.OF_ANOTHER_NAME);
    try {
      refused(verified(kind, "localhost", server.rootCertificate()), "hostname");
    } finally {
      server.show(Shown.USUAL);
    }
  }

  @ParameterizedTest
  @EnumSource(SecureSource.class)
  void aSourceSaysThatThePasswordIsWrong(SecureSource kind) {
    refused(
        kind.verified(
            "localhost", server.port(), "postgres", "wrong " + SECRET, server.rootCertificate()),
        "password authentication failed for user \"postgres\"");
  }

  /** The server's words for a connection without TLS, which 14 changed. */
  private static String unencrypted() {
    return Integer.parseInt(server.one("show server_version_num")) < 140_000
        ? "SSL off"
        : "no encryption";
  }

  private static NotificationSource verified(SecureSource kind, String host, String root) {
    return kind.verified(host, server.port(), "postgres", TlsServer.PASSWORD, root);
  }

  private void refused(NotificationSource source, String why) {
    RecordingListener listener = new RecordingListener();
    try (Subscription listening = source.listen(TABLE.channel(), listener)) {
      assertThat(listening).isNotNull();
      await().untilAsserted(() -> assertThat(listener.causes()).isNotEmpty());
    }
    assertThat(listener.count(RecordingListener.UP)).isZero();
    assertThat(CapturedLogs.printed(listener.causes().get(0))).contains(why).doesNotContain(SECRET);
    logs.awaitLine(line -> line.startsWith("WARN") && line.contains(" is out"));
  }

  private static void publish(HikariDataSource pool, String queue) throws SQLException {
    try (Connection connection = pool.getConnection()) {
      connection.setAutoCommit(false);
      PostgresOutbox.publisher(TABLE)
          .notify(NotifyMode.ALWAYS)
          .build()
          .publish(connection, OutboxMessage.to(queue).body("x").build());
      connection.commit();
    }
  }

  private static ClaimRequest claim(String queue) {
    return new ClaimRequest(
        queue,
        ClaimRequest.Range.ALL,
        10,
        1 << 20,
        Duration.ofSeconds(30),
        "s",
        ClaimRequest.Idle.UNCHANGED,
        null);
  }

  private static HikariDataSource pool(PGSimpleDataSource source) {
    HikariConfig config = new HikariConfig();
    config.setDataSource(source);
    config.setMaximumPoolSize(2);
    config.setConnectionTimeout(250);
    config.setInitializationFailTimeout(-1);
    return new HikariDataSource(config);
  }
}
