package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.StringJoiner;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.transaction.PlatformTransactionManager;

/** Finds the transaction manager that transactional handlers run under. */
final class HandlerTransactionManager {
  static final String REMEDY =
      "declare a JdbcTransactionManager or a JpaTransactionManager of the outbox's data source";

  private HandlerTransactionManager() {}

  /**
   * Returns the only one of the outbox's data source, or the primary one of several.
   *
   * @throws OutboxException if there is none, or it cannot be told which
   */
  static SpringTransactions of(ConfigurableListableBeanFactory beans, DataSource outbox) {
    Map<String, PlatformTransactionManager> fit = new LinkedHashMap<>();
    StringJoiner faults = new StringJoiner(", ", " (", ")").setEmptyValue("");
    BeanFactoryUtils.beansOfTypeIncludingAncestors(beans, PlatformTransactionManager.class)
        .forEach(
            (name, manager) -> {
              String fault = ManagedDataSource.faultOf(manager, outbox);
              if (fault == null) {
                fit.put(name, manager);
              } else {
                faults.add("'" + name + "' " + fault);
              }
            });
    PlatformTransactionManager found =
        fit.size() == 1 ? fit.values().iterator().next() : primary(beans, fit);
    if (found == null) {
      throw new OutboxException(
          fit.isEmpty()
              ? "there is no transaction manager for it" + faults + "; " + REMEDY
              : "there are several transaction managers of the outbox's data source, "
                  + fit.keySet()
                  + "; mark one of them with @Primary");
    }
    return SpringTransactions.of(found, outbox);
  }

  private static @Nullable PlatformTransactionManager primary(
      ConfigurableListableBeanFactory beans, Map<String, PlatformTransactionManager> fit) {
    PlatformTransactionManager primary =
        beans.getBeanProvider(PlatformTransactionManager.class).getIfUnique();
    return fit.containsValue(primary) ? primary : null;
  }
}
