package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spring.OutboxProperties.Listen;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.util.Properties;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGProperty;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.jdbc.datasource.AbstractDataSource;
import org.springframework.util.ClassUtils;

/**
 * Connects where the properties say, else where the pool does: without the pool, and with the login
 * that the pool has at that moment, since it may be changed while the service runs.
 */
final class ListenSource extends AbstractDataSource {
  private static final String URL_PREFIX = "jdbc:postgresql:";
  private static final String REMEDY =
      "; set outbox4j.listen.url to the jdbc:postgresql: URL of the server, or declare a"
          + " NotificationSource bean, or set outbox4j.listen.enabled=false to poll";

  /** A server that accepts and says nothing would be waited for without an end. */
  private static final int READ_SECONDS = 10;

  private final Listen listen;
  private final DataSource dataSource;
  private final boolean hikari = ClassUtils.isPresent("com.zaxxer.hikari.HikariDataSource", null);

  ListenSource(Listen listen, DataSource dataSource) {
    this.listen = listen;
    this.dataSource = dataSource;
  }

  /**
   * Returns what listens there.
   *
   * @throws OutboxException if it cannot be seen where that is
   */
  static NotificationSource of(Listen listen, DataSource dataSource) {
    ListenSource source = new ListenSource(listen, dataSource);
    source.unpooled(); // refuses now what it would refuse at each connection
    return PgjdbcListen.on(source);
  }

  @Override
  public Connection getConnection() throws SQLException {
    return unpooled().getConnection();
  }

  @Override
  public Connection getConnection(String username, String password) throws SQLException {
    throw new SQLFeatureNotSupportedException(
        "The login is that of outbox4j.listen, or the pool's");
  }

  private PGSimpleDataSource unpooled() {
    PoolTarget pool = hikari ? HikariTarget.of(dataSource) : null;
    PGSimpleDataSource source = new PGSimpleDataSource();
    setUrl(source, url(pool));
    if (pool != null) {
      setKnown(source, pool.properties());
      setLogin(source, pool.username(), pool.password());
    }
    setLogin(source, listen.username(), listen.password());
    source.setTcpKeepAlive(true);
    if (source.getSocketTimeout() == 0) {
      source.setSocketTimeout(READ_SECONDS);
    }
    return source;
  }

  private String url(@Nullable PoolTarget pool) {
    String url = listen.url() != null ? listen.url() : pool == null ? null : pool.url();
    if (url == null) {
      throw new OutboxException(
          "It cannot be seen where the data source connects, so there is no place to listen at"
              + REMEDY);
    }
    if (!url.startsWith(URL_PREFIX)) {
      throw new OutboxException(whose() + kind(url) + ", and only pgjdbc itself listens" + REMEDY);
    }
    return url;
  }

  private String whose() {
    return listen.url() != null ? "outbox4j.listen.url " : "The URL of the data source ";
  }

  /** What follows may hold a password. */
  private static String kind(String url) {
    int end = url.startsWith("jdbc:") ? url.indexOf(':', "jdbc:".length()) : -1;
    return end < 0 ? "is no JDBC URL" : "begins with " + url.substring(0, end + 1);
  }

  private void setUrl(PGSimpleDataSource source, String url) {
    try {
      source.setUrl(url);
    } catch (IllegalArgumentException quotesTheUrl) {
      throw new OutboxException(whose() + "cannot be read by pgjdbc" + REMEDY);
    }
  }

  private static void setLogin(
      PGSimpleDataSource source, @Nullable String username, @Nullable String password) {
    if (username != null) {
      source.setUser(username);
    }
    if (password != null) {
      source.setPassword(password);
    }
  }

  /**
   * Such as those of TLS. The driver ignores properties that it does not know, and so does this.
   */
  private static void setKnown(PGSimpleDataSource source, Properties properties) {
    for (String name : properties.stringPropertyNames()) {
      PGProperty known = PGProperty.forName(name);
      if (known != null) {
        source.setProperty(known, properties.getProperty(name));
      }
    }
  }
}
