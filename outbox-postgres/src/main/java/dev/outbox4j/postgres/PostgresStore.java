package dev.outbox4j.postgres;

import dev.outbox4j.spi.OutboxStore;
import javax.sql.DataSource;

/** An {@link OutboxStore} on a PostgreSQL table, as other modules see it. */
public interface PostgresStore extends OutboxStore {

  /** {@return the pool it borrows from} */
  DataSource dataSource();

  /** {@return its table} */
  OutboxTable table();
}
