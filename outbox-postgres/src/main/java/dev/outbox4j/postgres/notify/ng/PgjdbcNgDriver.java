package dev.outbox4j.postgres.notify.ng;

import com.impossibl.postgres.api.jdbc.PGConnection;
import com.impossibl.postgres.jdbc.PGDataSource;
import dev.outbox4j.postgres.notify.internal.ListenConnection;
import dev.outbox4j.postgres.notify.internal.ListenDriver;
import dev.outbox4j.postgres.notify.internal.Pools;
import java.sql.Connection;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;
import javax.sql.DataSource;

/** Opens connections of pgjdbc-ng. */
final class PgjdbcNgDriver implements ListenDriver {
  private static final String ADVICE =
      "give an unpooled data source of pgjdbc-ng, such as com.impossibl.postgres.jdbc.PGDataSource";

  private final DataSource source;

  private PgjdbcNgDriver(DataSource source) {
    this.source = source;
  }

  static PgjdbcNgDriver of(DataSource source) {
    Objects.requireNonNull(source, "source");
    Pools.refuse(source, ADVICE);
    return new PgjdbcNgDriver(source);
  }

  @Override
  public String name() {
    return "pgjdbc-ng";
  }

  @Override
  @SuppressWarnings("resource") // the caller's, or closed here
  public ListenConnection open(Consumer<String> onNotification, Duration limit) throws Exception {
    Connection connection = bounded(limit).getConnection();
    try {
      if (connection instanceof PGConnection ours) {
        return new PgjdbcNgListenConnection(ours, onNotification, limit);
      }
      throw Pools.pooled(connection, ADVICE);
    } catch (Exception e) {
      connection.close();
      throw e;
    }
  }

  /** The driver reads the catalog while it connects, without end if it has no network timeout. */
  private DataSource bounded(Duration limit) {
    if (source.getClass() != PGDataSource.class) {
      return source; // a subclass may well decide by itself how to connect
    }
    PGDataSource given = (PGDataSource) source;
    if (given.getNetworkTimeout() > 0) {
      return given;
    }
    PGDataSource copy = new PGDataSource();
    copy.init(given.getReference());
    copy.setNetworkTimeout(Math.toIntExact(limit.toMillis()));
    return copy;
  }
}
