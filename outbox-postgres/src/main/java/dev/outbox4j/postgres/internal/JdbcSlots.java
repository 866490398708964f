package dev.outbox4j.postgres.internal;

import dev.outbox4j.spi.SlotStore;
import java.util.Map;

/** The slots of an outbox over JDBC. Thread-safe; renders its statement when it is made. */
final class JdbcSlots implements SlotStore {
  private final Jdbc jdbc;
  private final Sql open;

  JdbcSlots(Jdbc jdbc) {
    this.jdbc = jdbc;
    this.open = Preamble.before(StoreSql.OPEN_SLOTS, jdbc.table());
  }

  @Override
  public int open(String queue, int slots) {
    return jdbc.run(
        "open slots",
        connection ->
            jdbc.preamble()
                .run(
                    connection,
                    open,
                    Map.of("queue", queue, "slots", slots),
                    null,
                    (start, results) -> results.next().updated()));
  }
}
