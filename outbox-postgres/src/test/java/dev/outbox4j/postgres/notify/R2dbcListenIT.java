package dev.outbox4j.postgres.notify;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.postgres.notify.r2dbc.R2dbcListen;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.NotificationSource;
import io.r2dbc.pool.ConnectionPool;
import io.r2dbc.pool.ConnectionPoolConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.ConnectionFactoryMetadata;
import io.r2dbc.spi.Wrapped;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Publisher;

class R2dbcListenIT extends ListenFaultContract {
  R2dbcListenIT(TestDatabase database) {
    super(database);
  }

  @Override
  NotificationSource source(Endpoint endpoint) {
    return R2dbcListen.on(factory(endpoint));
  }

  @Override
  NotificationSource source(Endpoint endpoint, Duration interval, Duration timeout) {
    return R2dbcListen.on(factory(endpoint)).probe(interval, timeout);
  }

  @Test
  void takesAWrappedFactory() {
    RecordingListener listener =
        listening(R2dbcListen.on(new WrappedFactory(factory(Endpoint.of(database)))), channel("a"));
    fence(listener, channel("a"));
    assertThat(listener.payloads()).containsExactly("fence");
  }

  @Test
  void refusesAPool() {
    ConnectionPool pool =
        new ConnectionPool(
            ConnectionPoolConfiguration.builder(factory(Endpoint.of(database))).build());
    for (ConnectionFactory pooled : List.of(pool, new WrappedFactory(pool))) {
      assertThatThrownBy(() -> R2dbcListen.on(pooled))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("unpooled")
          .hasMessageContaining("io.r2dbc.pool.ConnectionPool")
          .hasMessageContaining("PostgresqlConnectionFactory");
    }
    pool.dispose();
  }

  private static PostgresqlConnectionFactory factory(Endpoint endpoint) {
    return new PostgresqlConnectionFactory(
        PostgresqlConnectionConfiguration.builder()
            .host(endpoint.host())
            .port(endpoint.port())
            .database(endpoint.database())
            .username(endpoint.user())
            .password(endpoint.password())
            .tcpKeepAlive(true)
            .build());
  }

  private record WrappedFactory(ConnectionFactory factory)
      implements ConnectionFactory, Wrapped<ConnectionFactory> {
    @Override
    public Publisher<? extends Connection> create() {
      return factory.create();
    }

    @Override
    public ConnectionFactoryMetadata getMetadata() {
      return factory.getMetadata();
    }

    @Override
    public ConnectionFactory unwrap() {
      return factory;
    }
  }
}
