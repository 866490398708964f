package dev.outbox4j.postgres.notify.internal;

import java.sql.SQLException;
import java.sql.Wrapper;
import java.util.List;
import java.util.Set;

/**
 * Recognizes connection pools, by name so that none has to be on the class path. A pool retires,
 * validates and lends out its connections, and LISTEN lives only as long as its session.
 */
public final class Pools {
  private static final Set<String> NAMES =
      Set.of(
          "com.zaxxer.hikari.HikariDataSource",
          "com.mchange.v2.c3p0.PooledDataSource",
          "io.agroal.api.AgroalDataSource",
          "io.r2dbc.pool.ConnectionPool",
          "io.r2dbc.pool.PooledConnection",
          "oracle.ucp.jdbc.PoolDataSource",
          "org.apache.commons.dbcp2.BasicDataSource",
          "org.apache.commons.dbcp2.PoolingDataSource",
          "org.apache.tomcat.jdbc.pool.DataSourceProxy",
          "org.postgresql.ds.PGPoolingDataSource");

  private Pools() {}

  /**
   * Refuses a pool, also one that is wrapped.
   *
   * @param source a source of connections, or a connection
   * @param advice what to give instead
   * @throws IllegalArgumentException if it is a pool
   */
  public static void refuse(Object source, String advice) {
    if (isPool(source.getClass()) || wrapsPool(source)) {
      throw pooled(source, advice);
    }
  }

  /** {@return the refusal of something that hides the driver's own connection} */
  public static IllegalArgumentException pooled(Object source, String advice) {
    return new IllegalArgumentException(
        "LISTEN needs an unpooled connection of its own, and "
            + source.getClass().getName()
            + " is a pool or hides the driver's connection; "
            + advice);
  }

  private static boolean isPool(Class<?> type) {
    if (NAMES.contains(type.getName())) {
      return true;
    }
    Class<?> parent = type.getSuperclass();
    return (parent != null && isPool(parent))
        || List.of(type.getInterfaces()).stream().anyMatch(Pools::isPool);
  }

  private static boolean wrapsPool(Object source) {
    return source instanceof Wrapper wrapper
        && NAMES.stream().anyMatch(name -> wraps(wrapper, name));
  }

  private static boolean wraps(Wrapper wrapper, String name) {
    try {
      return wrapper.isWrapperFor(Class.forName(name, false, wrapper.getClass().getClassLoader()));
    } catch (ClassNotFoundException | LinkageError | SQLException e) {
      return false; // not on the class path, or not willing to tell: then it is not that pool
    }
  }
}
