package dev.outbox4j.postgres.notify.pgjdbc;

import dev.outbox4j.postgres.notify.internal.ListenConnection;
import dev.outbox4j.postgres.notify.internal.ListenDriver;
import dev.outbox4j.postgres.notify.internal.Pools;
import java.io.IOException;
import java.sql.Connection;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.postgresql.PGConnection;
import org.postgresql.ds.PGSimpleDataSource;

/** Opens connections of pgjdbc. */
final class PgjdbcDriver implements ListenDriver {
  private static final String ADVICE =
      "give an unpooled data source of pgjdbc, such as org.postgresql.ds.PGSimpleDataSource";

  private final DataSource source;

  private PgjdbcDriver(DataSource source) {
    this.source = source;
  }

  static PgjdbcDriver of(DataSource source) {
    Objects.requireNonNull(source, "source");
    Pools.refuse(source, ADVICE);
    return new PgjdbcDriver(source);
  }

  @Override
  public String name() {
    return "pgjdbc";
  }

  @Override
  @SuppressWarnings("resource") // the caller's, or closed here
  public ListenConnection open(Consumer<String> onNotification, Duration limit) throws Exception {
    Connection connection = bounded(limit).getConnection();
    try {
      // by identity: the driver's own pooled connections implement its interface, too
      if (connection instanceof PGConnection ours
          && connection.unwrap(PGConnection.class) == ours) {
        return new PgjdbcListenConnection(connection, ours, onNotification, limit);
      }
      throw Pools.pooled(connection, ADVICE);
    } catch (Exception e) {
      connection.close();
      throw e;
    }
  }

  /** Without a socket timeout the driver waits for ever when a server accepts and says nothing. */
  private DataSource bounded(Duration limit) throws IOException, ClassNotFoundException {
    if (source.getClass() != PGSimpleDataSource.class) {
      return source; // a subclass may well decide by itself how to connect
    }
    PGSimpleDataSource given = (PGSimpleDataSource) source;
    PGSimpleDataSource copy = new PGSimpleDataSource();
    copy.initializeFrom(given);
    copy.setTcpKeepAlive(true);
    if (given.getSocketTimeout() == 0) {
      copy.setSocketTimeout(Math.toIntExact(limit.toSeconds()));
    }
    return copy;
  }
}
