package dev.outbox4j.dlq;

import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.postgres.internal.Jdbc;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import org.jooq.Name;

/** Moves rows of one outbox to its dead-letter table. */
final class DeadLetterMover implements DeadLetterWriter {
  private final Jdbc jdbc;
  private final MoveStatement statement;
  private final String operation;

  DeadLetterMover(PostgresStore store, Name deadLetters) {
    jdbc = new Jdbc(store.dataSource(), store.table(), store.networkTimeout());
    statement = new MoveStatement(store.table().qualifiedName(), deadLetters);
    operation = "dead-letter to " + String.join(".", deadLetters.getName());
  }

  @Override
  public Set<Long> write(List<DeadLetterEntry> entries) {
    if (entries.isEmpty()) {
      throw new IllegalArgumentException("There is no row to dead-letter; give one or more");
    }
    // rows are locked in the order of their ids by every statement on them, so that none deadlock
    List<DeadLetterEntry> sorted =
        entries.stream().sorted(Comparator.comparingLong(entry -> entry.lease().id())).toList();
    return jdbc.run(operation, connection -> statement.run(connection, sorted));
  }
}
