package dev.outbox4j.dlq;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import javax.sql.DataSource;
import org.jooq.Name;

/** Moves rows of one outbox to its dead-letter table. */
final class DeadLetterMover implements DeadLetterWriter {
  private static final Duration NETWORK_TIMEOUT = Duration.ofSeconds(30);

  private final Jdbc jdbc;
  private final MoveStatement statement;
  private final String operation;

  DeadLetterMover(DataSource pool, OutboxTable outbox, Name deadLetters) {
    jdbc = new Jdbc(pool, outbox, NETWORK_TIMEOUT);
    statement = new MoveStatement(outbox.qualifiedName(), deadLetters);
    operation = "dead-letter to " + String.join(".", deadLetters.getName());
  }

  @Override
  public Set<Long> write(List<DeadLetterEntry> entries) {
    if (entries.isEmpty()) {
      throw new IllegalArgumentException("There is no row to dead-letter; give one or more");
    }
    return jdbc.run(operation, connection -> statement.run(connection, entries));
  }
}
