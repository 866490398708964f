package dev.outbox4j.test;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.spi.PayloadCodec;
import java.util.List;
import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Where assertions about an outbox begin. They throw plain {@link AssertionError}s and need no
 * assertion library; with one of yours, look at {@link OutboxAssert#published(String)}.
 */
public final class OutboxAssertions {
  private OutboxAssertions() {}

  /**
   * Begins assertions about an outbox in memory: about all that was ever published to it.
   *
   * @param outbox the outbox
   * @return the assertions
   */
  public static OutboxAssert assertThatOutbox(InMemoryOutbox outbox) {
    Objects.requireNonNull(outbox, "outbox");
    return new OutboxAssert(new InMemoryView(outbox), outbox.codec());
  }

  /**
   * Begins assertions about an outbox on PostgreSQL: about the rows that are in the table,
   * committed and not handled yet, since nothing is kept of those that were. So ask while no
   * subscriber runs. Dead letters are looked for in {@code <table>_dlq} beside it, unless {@link
   * OutboxAssert#deadLettersIn(String)} names another table.
   *
   * @param dataSource where to borrow a connection for each question
   * @param table the outbox table
   * @return the assertions
   */
  public static OutboxAssert assertThatOutbox(DataSource dataSource, OutboxTable table) {
    return new OutboxAssert(TableView.of(dataSource, table), null);
  }

  /**
   * Begins the same about a table on the search path.
   *
   * @param dataSource where to borrow a connection for each question
   * @param table the outbox table's name, by the rules of {@link OutboxTable#named}
   * @return the assertions
   */
  public static OutboxAssert assertThatOutbox(DataSource dataSource, String table) {
    return assertThatOutbox(dataSource, OutboxTable.named(table));
  }

  /** The rows in memory have their outbox's codec already. */
  private record InMemoryView(InMemoryOutbox outbox) implements OutboxView {
    @Override
    public String name() {
      return "The outbox in memory";
    }

    @Override
    public List<OutboxRow> published(@Nullable PayloadCodec codec) {
      return outbox.published().stream().map(row -> row.with(codec)).toList();
    }

    @Override
    public List<OutboxRow> waiting(String queue, @Nullable PayloadCodec codec) {
      return outbox.waiting(queue).stream().map(row -> row.with(codec)).toList();
    }

    @Override
    public List<OutboxRow> due(String queue, @Nullable PayloadCodec codec) {
      return outbox.due(queue).stream().map(row -> row.with(codec)).toList();
    }

    @Override
    public List<DeadLetter> deadLettered(String queue, @Nullable PayloadCodec codec) {
      return outbox.deadLettered(queue).stream().map(dead -> dead.with(codec)).toList();
    }
  }
}
