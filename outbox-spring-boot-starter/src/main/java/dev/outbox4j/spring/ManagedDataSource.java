package dev.outbox4j.spring;

import java.util.Objects;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.ResourceTransactionManager;
import org.springframework.util.ClassUtils;

/** Knows of which data source a transaction manager's transactions are. */
final class ManagedDataSource {
  private static final boolean JPA =
      ClassUtils.isPresent(
          "org.springframework.orm.jpa.JpaTransactionManager",
          ManagedDataSource.class.getClassLoader());

  private ManagedDataSource() {}

  /** Transaction managers bind the connection to the data source behind the proxy. */
  static DataSource unwrapped(DataSource dataSource) {
    return dataSource instanceof TransactionAwareDataSourceProxy proxy
        ? Objects.requireNonNull(proxy.getTargetDataSource(), "target data source")
        : dataSource;
  }

  /**
   * Tells why handlers cannot run in a manager's transactions.
   *
   * @return what a sentence says of the manager; null if they can
   */
  @SuppressWarnings("ReferenceEquality") // the bound connection is found by the very object
  static @Nullable String faultOf(PlatformTransactionManager manager, DataSource outbox) {
    if (!(manager instanceof ResourceTransactionManager resources)) {
      return "has transactions that are not of one connection, as those of JTA are";
    }
    DataSource own = of(resources);
    if (own == null) {
      return "does not say of which data source its transactions are";
    }
    if (unwrapped(own) != unwrapped(outbox)) {
      return "has transactions of another data source";
    }
    boolean silent =
        manager instanceof AbstractPlatformTransactionManager configured
            && configured.getTransactionSynchronization()
                == AbstractPlatformTransactionManager.SYNCHRONIZATION_NEVER;
    return silent ? "has SYNCHRONIZATION_NEVER set" : null;
  }

  private static @Nullable DataSource of(ResourceTransactionManager manager) {
    if (manager.getResourceFactory() instanceof DataSource dataSource) {
      return dataSource;
    }
    return JPA ? Jpa.of(manager) : null;
  }

  static String nameOf(PlatformTransactionManager manager) {
    return manager.getClass().getName();
  }

  /** Loaded only when Spring's support of JPA is. */
  private static final class Jpa {
    static @Nullable DataSource of(ResourceTransactionManager manager) {
      return manager instanceof JpaTransactionManager jpa ? jpa.getDataSource() : null;
    }
  }
}
