package dev.outbox4j.examples.docs;

import dev.outbox4j.postgres.testing.TestDatabase;
import io.r2dbc.postgresql.PostgresqlConnectionConfiguration;
import io.r2dbc.postgresql.PostgresqlConnectionFactory;
import io.r2dbc.spi.ConnectionFactory;

/** What the samples need beside the {@link TestDatabase}. */
final class SampleDatabase {
  private SampleDatabase() {}

  static ConnectionFactory r2dbc(TestDatabase database) {
    return new PostgresqlConnectionFactory(
        PostgresqlConnectionConfiguration.builder()
            .host(database.server().host())
            .port(database.server().port())
            .database(database.name())
            .username(database.server().user())
            .password(database.server().password())
            .build());
  }
}
