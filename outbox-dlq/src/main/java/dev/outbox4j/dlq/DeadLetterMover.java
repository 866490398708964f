package dev.outbox4j.dlq;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.DeadLetterEntry;
import dev.outbox4j.spi.DeadLetterWriter;
import java.sql.SQLException;
import java.util.List;
import java.util.Set;
import javax.sql.DataSource;
import org.jooq.Name;

/** Moves rows of one outbox to its dead-letter table. */
final class DeadLetterMover implements DeadLetterWriter {
  private final DataSource pool;
  private final MoveStatement statement;
  private final MoveFaults faults;

  DeadLetterMover(DataSource pool, OutboxTable outbox, Name deadLetters) {
    this.pool = pool;
    this.statement = new MoveStatement(outbox.qualifiedName(), deadLetters);
    this.faults = new MoveFaults(outbox.toString(), String.join(".", deadLetters.getName()));
  }

  @Override
  public Set<Long> write(List<DeadLetterEntry> entries) {
    if (entries.isEmpty()) {
      throw new IllegalArgumentException("There is no row to dead-letter; give one or more");
    }
    AutoCommitLoan loan;
    try {
      loan = AutoCommitLoan.from(pool);
    } catch (SQLException e) {
      throw faults.notBegun(entries.size(), e);
    }
    try (loan) {
      return statement.run(loan.connection(), entries);
    } catch (SQLException e) {
      throw faults.failed(entries.size(), e);
    }
  }
}
