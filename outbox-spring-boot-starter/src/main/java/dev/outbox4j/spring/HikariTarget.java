package dev.outbox4j.spring;

import com.zaxxer.hikari.HikariDataSource;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.jdbc.DataSourceUnwrapper;

/** Knows HikariCP, which need not be on the class path. */
final class HikariTarget {
  private HikariTarget() {}

  /** Returns where the pool connects; null if it is another kind of pool. */
  static @Nullable PoolTarget of(DataSource dataSource) {
    HikariDataSource pool = DataSourceUnwrapper.unwrap(dataSource, HikariDataSource.class);
    return pool == null
        ? null
        : new PoolTarget(
            pool.getJdbcUrl(),
            pool.getUsername(),
            pool.getPassword(),
            pool.getDataSourceProperties());
  }
}
