package dev.outbox4j.postgres.internal;

import com.zaxxer.hikari.HikariDataSource;
import java.sql.SQLException;
import java.util.OptionalInt;
import javax.sql.DataSource;

/** The size of a pool, if it is HikariCP's. */
public final class PoolSize {
  private static final boolean HIKARI = hikari();

  private PoolSize() {}

  /**
   * Returns how many connections a pool has at most.
   *
   * @param dataSource a pool, or not
   * @return the number, if it can be seen
   */
  public static OptionalInt of(DataSource dataSource) {
    return HIKARI ? Hikari.size(dataSource) : OptionalInt.empty();
  }

  private static boolean hikari() {
    try {
      Class.forName("com.zaxxer.hikari.HikariDataSource", false, PoolSize.class.getClassLoader());
      return true;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }

  /** Lets a pool make its connections anew, as they are given back. */
  static void renewConnections(DataSource dataSource) {
    if (HIKARI) {
      Hikari.evict(dataSource);
    }
  }

  /** Loaded only when HikariCP is. */
  private static final class Hikari {
    static void evict(DataSource dataSource) {
      if (dataSource instanceof HikariDataSource pool && pool.getHikariPoolMXBean() != null) {
        pool.getHikariPoolMXBean().softEvictConnections();
      }
    }

    static OptionalInt size(DataSource dataSource) {
      if (dataSource instanceof HikariDataSource pool) {
        return OptionalInt.of(pool.getMaximumPoolSize());
      }
      try {
        return dataSource.isWrapperFor(HikariDataSource.class)
            ? OptionalInt.of(dataSource.unwrap(HikariDataSource.class).getMaximumPoolSize())
            : OptionalInt.empty();
      } catch (SQLException e) {
        // it cannot say; a pool that is too small shows when a connection is borrowed
        return OptionalInt.empty();
      }
    }
  }
}
