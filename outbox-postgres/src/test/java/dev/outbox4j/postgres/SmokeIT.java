package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class SmokeIT {
  @Test
  void publishesBySql(TestDatabase database) {
    assertThat(database.one(Long.class, "select outbox_publish('orders', 'x'::bytea)"))
        .isEqualTo(1);
    assertThat(database.count("outbox")).isEqualTo(1);
  }
}
