package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.postgres.notify.pgjdbc.PgjdbcListen;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spring.OutboxProperties.Listen;
import java.util.Properties;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGProperty;
import org.postgresql.ds.PGSimpleDataSource;
import org.springframework.util.ClassUtils;

/** Listens where the properties say, else where the pool connects. */
final class ListenSource {
  private static final String URL_PREFIX = "jdbc:postgresql:";

  private ListenSource() {}

  static NotificationSource of(Listen listen, DataSource dataSource) {
    PoolTarget pool =
        ClassUtils.isPresent("com.zaxxer.hikari.HikariDataSource", null)
            ? HikariTarget.of(dataSource)
            : null;
    String url = listen.url() != null ? listen.url() : pool == null ? null : pool.url();
    if (url == null || !url.startsWith(URL_PREFIX)) {
      throw new OutboxException(
          "It cannot be seen where the data source connects, so there is no place to listen at;"
              + " set outbox4j.listen.url to the jdbc:postgresql: URL of the server, or declare a"
              + " NotificationSource bean, or set outbox4j.listen.enabled=false to poll");
    }
    return PgjdbcListen.on(unpooled(url, listen, pool));
  }

  private static PGSimpleDataSource unpooled(String url, Listen listen, @Nullable PoolTarget pool) {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setUrl(url);
    if (pool != null) {
      setKnown(source, pool.properties());
      setLogin(source, pool.username(), pool.password());
    }
    setLogin(source, listen.username(), listen.password());
    return source;
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
