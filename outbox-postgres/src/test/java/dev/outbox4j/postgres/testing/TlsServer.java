package dev.outbox4j.postgres.testing;

import static org.awaitility.Awaitility.await;

import io.zonky.test.db.postgres.embedded.EmbeddedPostgres;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * A server of its own, from the binaries whatever the other tests run on, that takes connections by
 * TLS and {@code scram-sha-256} only.
 */
public final class TlsServer implements AutoCloseable {
  /** With what a URL, a shell or SQL would stumble over. */
  public static final String PASSWORD = "S3CRET: @/?&='\"\\$%41ü";

  /** The server's certificates, all by the same authority. */
  public enum Shown {
    /** For {@code localhost}, signed with SHA-256. */
    USUAL("server.crt"),
    /** For {@code localhost}, signed with SHA-384. */
    BY_SHA_384("sha384.crt"),
    /** For another host, signed with SHA-256. */
    OF_ANOTHER_NAME("misnamed.crt");

    private final String file;

    Shown(String file) {
      this.file = file;
    }
  }

  private final EmbeddedPostgres server;
  private final Certificates certificates;

  private TlsServer(EmbeddedPostgres server, Certificates certificates) {
    this.server = server;
    this.certificates = certificates;
  }

  /**
   * Starts one.
   *
   * @param folder where to keep the certificates
   */
  public static TlsServer start(Path folder)
      throws IOException, GeneralSecurityException, SQLException {
    Certificates certificates = Certificates.make(folder);
    EmbeddedPostgres server = PostgresServer.startEmbedded();
    try {
      secure(server, certificates);
      TlsServer started = new TlsServer(server, certificates);
      // the reload takes a moment, and what is done by then must not be by the old rules
      await()
          .atMost(Duration.ofSeconds(20))
          .ignoreExceptions()
          .until(() -> started.refusesPlain() && started.one("select 'tls'").equals("tls"));
      return started;
    } catch (IOException | SQLException | RuntimeException e) {
      server.close();
      throw e;
    }
  }

  private static void secure(EmbeddedPostgres server, Certificates certificates)
      throws IOException, SQLException {
    try (Connection connection = server.getPostgresDatabase().getConnection();
        Statement statement = connection.createStatement()) {
      Path data;
      try (ResultSet row = statement.executeQuery("show data_directory")) {
        row.next();
        data = Path.of(row.getString(1));
      }
      Files.copy(certificates.server(), data.resolve("server.crt"));
      Files.copy(certificates.serverBySha384(), data.resolve("sha384.crt"));
      Files.copy(certificates.misnamedServer(), data.resolve("misnamed.crt"));
      Files.copy(certificates.serverKey(), data.resolve("server.key"));
      Files.setPosixFilePermissions(
          data.resolve("server.key"), PosixFilePermissions.fromString("rw-------"));
      statement.execute("set password_encryption = 'scram-sha-256'");
      statement.execute("alter role postgres password '" + PASSWORD.replace("'", "''") + "'");
      statement.execute("alter system set password_encryption = 'scram-sha-256'");
      statement.execute("alter system set ssl = on");
      Files.write(data.resolve("pg_hba.conf"), List.of("hostssl all all all scram-sha-256"));
      statement.execute("select pg_reload_conf()");
    }
  }

  public int port() {
    return server.getPort();
  }

  /** Returns the root certificate of who signed the server's. */
  public String rootCertificate() {
    return certificates.rootOfOurs().toString();
  }

  /** Returns a root certificate that has nothing to do with the server's. */
  public String strangersCertificate() {
    return certificates.rootOfStranger().toString();
  }

  /** Has the server show another certificate to whoever connects from now on. */
  public void show(Shown certificate) {
    try (Connection connection = unchecked().getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("alter system set ssl_cert_file = '" + certificate.file + "'");
      statement.execute("select pg_reload_conf()");
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
    // a session inherits the setting and the certificate from the same reload
    await().atMost(Duration.ofSeconds(20)).until(() -> shown().equals(certificate.file));
  }

  private String shown() {
    return one(unchecked(), "show ssl_cert_file");
  }

  private PGSimpleDataSource unchecked() {
    PGSimpleDataSource source = plain();
    source.setSslMode("require");
    return source;
  }

  /** Returns unpooled connections without TLS. */
  public PGSimpleDataSource plain() {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setServerNames(new String[] {"localhost"});
    source.setPortNumbers(new int[] {port()});
    source.setDatabaseName("postgres");
    source.setUser("postgres");
    source.setPassword(PASSWORD);
    source.setSslMode("disable");
    return source;
  }

  /** Returns unpooled connections that check the server's certificate and name. */
  public PGSimpleDataSource verified() {
    PGSimpleDataSource source = plain();
    source.setSslMode("verify-full");
    source.setSslRootCert(rootCertificate());
    return source;
  }

  /** Returns the only value of a query. */
  public String one(String sql) {
    return one(verified(), sql);
  }

  private static String one(PGSimpleDataSource source, String sql) {
    try (Connection connection = source.getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(sql)) {
      row.next();
      return row.getString(1);
    } catch (SQLException e) {
      throw new IllegalStateException(sql, e);
    }
  }

  private boolean refusesPlain() {
    try (Connection connection = plain().getConnection()) {
      return !connection.isValid(1);
    } catch (SQLException e) {
      return "28000".equals(e.getSQLState());
    }
  }

  @Override
  public void close() throws IOException {
    server.close();
  }
}
