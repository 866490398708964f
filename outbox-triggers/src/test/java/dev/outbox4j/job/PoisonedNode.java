package dev.outbox4j.job;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import org.postgresql.ds.PGSimpleDataSource;

/** A node in a process of its own, which a job kills each time. */
final class PoisonedNode {
  static final JobType<String> POISON = JobType.of("poison", String.class);

  private PoisonedNode() {}

  public static void main(String[] arguments) {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setUrl(arguments[0]);
    source.setUser(arguments[1]);
    source.setPassword(arguments[2]);
    JobQueue.builder(PostgresOutbox.on(source, OutboxTable.named("outbox")), JobKit.QUEUE)
        .on(
            POISON,
            (body, delivery) -> {
              note(source);
              Runtime.getRuntime().halt(1);
            })
        .subscriber(settings -> settings.lease(Duration.ofMinutes(10)))
        .build()
        .start();
  }

  private static void note(PGSimpleDataSource source) throws SQLException {
    try (Connection connection = source.getConnection();
        Statement statement = connection.createStatement()) {
      statement.execute("insert into calls default values");
    }
  }
}
