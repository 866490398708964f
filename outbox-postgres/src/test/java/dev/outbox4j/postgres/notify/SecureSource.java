package dev.outbox4j.postgres.notify;

import com.impossibl.postgres.jdbc.PGDataSource;
import dev.outbox4j.postgres.notify.ng.PgjdbcNgListen;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import dev.outbox4j.spi.NotificationSource;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.postgresql.client.SSLMode;
import org.postgresql.ds.PGSimpleDataSource;

/** Each LISTEN source by TLS that checks the server's certificate and name, and by none. */
enum SecureSource {
  R2DBC {
    @Override
    NotificationSource verified(
        String host, int port, String user, String password, String rootCertificate) {
      return R2dbcListen.on(
          new PostgresqlConnectionFactory(
              of(host, port, user, password)
                  .sslMode(SSLMode.VERIFY_FULL)
                  .sslRootCert(rootCertificate)
                  .build()));
    }

    @Override
    NotificationSource plain(String host, int port, String user, String password) {
      return R2dbcListen.on(
          new PostgresqlConnectionFactory(
              of(host, port, user, password).sslMode(SSLMode.DISABLE).build()));
    }

    private static PostgresqlConnectionConfiguration.Builder of(
        String host, int port, String user, String password) {
      return PostgresqlConnectionConfiguration.builder()
          .host(host)
          .port(port)
          .database("postgres")
          .username(user)
          .password(password);
    }
  },

  PGJDBC_NG {
    @Override
    NotificationSource verified(
        String host, int port, String user, String password, String rootCertificate) {
      PGDataSource source = of(host, port, user, password);
      source.setSslMode("verify-full");
      source.setSslCaCertificateFile(rootCertificate);
      return PgjdbcNgListen.on(source);
    }

    @Override
    NotificationSource plain(String host, int port, String user, String password) {
      PGDataSource source = of(host, port, user, password);
      source.setSslMode("disable");
      return PgjdbcNgListen.on(source);
    }

    private static PGDataSource of(String host, int port, String user, String password) {
      PGDataSource source = new PGDataSource();
      source.setServerName(host);
      source.setPortNumber(port);
      source.setDatabaseName("postgres");
      source.setUser(user);
      source.setPassword(password);
      return source;
    }
  },

  PGJDBC {
    @Override
    NotificationSource verified(
        String host, int port, String user, String password, String rootCertificate) {
      PGSimpleDataSource source = of(host, port, user, password);
      source.setSslMode("verify-full");
      source.setSslRootCert(rootCertificate);
      return PgjdbcListen.on(source);
    }

    @Override
    NotificationSource plain(String host, int port, String user, String password) {
      PGSimpleDataSource source = of(host, port, user, password);
      source.setSslMode("disable");
      return PgjdbcListen.on(source);
    }

    private static PGSimpleDataSource of(String host, int port, String user, String password) {
      PGSimpleDataSource source = new PGSimpleDataSource();
      source.setServerNames(new String[] {host});
      source.setPortNumbers(new int[] {port});
      source.setDatabaseName("postgres");
      source.setUser(user);
      source.setPassword(password);
      return source;
    }
  };

  abstract NotificationSource verified(
      String host, int port, String user, String password, String rootCertificate);

  abstract NotificationSource plain(String host, int port, String user, String password);
}
