package dev.outbox4j.postgres.notify;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.impossibl.postgres.jdbc.PGDataSource;
import com.zaxxer.hikari.HikariDataSource;
import dev.outbox4j.postgres.notify.ng.PgjdbcNgListen;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.NotificationSource;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class PgjdbcNgListenIT extends ListenFaultContract {
  PgjdbcNgListenIT(TestDatabase database) {
    super(database);
  }

  @Override
  NotificationSource source(Endpoint endpoint) {
    return PgjdbcNgListen.on(dataSource(endpoint));
  }

  @Override
  NotificationSource source(Endpoint endpoint, Duration interval, Duration timeout) {
    return PgjdbcNgListen.on(dataSource(endpoint)).probe(interval, timeout);
  }

  @Test
  void refusesAPool() {
    try (HikariDataSource pool = new HikariDataSource()) {
      assertThatThrownBy(() -> PgjdbcNgListen.on(pool))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("unpooled")
          .hasMessageContaining("PGDataSource");
    }
  }

  private static PGDataSource dataSource(Endpoint endpoint) {
    PGDataSource source = new PGDataSource();
    source.setServerName(endpoint.host());
    source.setPortNumber(endpoint.port());
    source.setDatabaseName(endpoint.database());
    source.setUser(endpoint.user());
    source.setPassword(endpoint.password());
    return source;
  }
}
