package dev.outbox4j.postgres;

import dev.outbox4j.spi.OutboxStore;
import java.time.Duration;
import javax.sql.DataSource;

/** An {@link OutboxStore} on a PostgreSQL table, as other modules see it. */
public interface PostgresStore extends OutboxStore {

  /** {@return the pool it borrows from} */
  DataSource dataSource();

  /** {@return its table} */
  OutboxTable table();

  /** {@return how long it waits for the server's answer before it gives a connection up} */
  Duration networkTimeout();
}
