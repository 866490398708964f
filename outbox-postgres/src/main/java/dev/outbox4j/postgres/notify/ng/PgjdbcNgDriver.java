package dev.outbox4j.postgres.notify.ng;

import com.impossibl.postgres.api.jdbc.PGConnection;
import com.impossibl.postgres.jdbc.PGDataSource;
import dev.outbox4j.postgres.notify.internal.ListenConnection;
import dev.outbox4j.postgres.notify.internal.ListenDriver;
import dev.outbox4j.postgres.notify.internal.Pools;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;
import javax.sql.DataSource;

/** Opens connections of pgjdbc-ng. */
final class PgjdbcNgDriver implements ListenDriver {
  private static final String ADVICE =
      "give an unpooled data source of pgjdbc-ng, such as com.impossibl.postgres.jdbc.PGDataSource";

  /** The server's words, if its messages are in English. */
  private static final String BINDING_REFUSED = "channel binding check failed";

  private static final String ONLY_SHA_256 =
      "pgjdbc-ng can log in only if the server's certificate is signed with SHA-256, since it binds"
          + " SCRAM to the TLS connection by that hash alone. Listen by R2dbcListen or PgjdbcListen,"
          + " or have the certificate signed with SHA-256. If it is, the TLS connection does not end"
          + " at the server: something sits between";

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
    Connection connection = connect(bounded(limit));
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

  /**
   * The driver has no setting to leave the binding out, and hashes every certificate by SHA-256.
   */
  private static Connection connect(DataSource source) throws SQLException {
    try {
      return source.getConnection();
    } catch (SQLException e) {
      String message = e.getMessage();
      if (message != null && message.contains(BINDING_REFUSED)) {
        throw new SQLException(ONLY_SHA_256, e.getSQLState(), e);
      }
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
