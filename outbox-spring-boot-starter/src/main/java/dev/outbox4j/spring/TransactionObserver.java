package dev.outbox4j.spring;

import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.transaction.ConfigurableTransactionManager;

/**
 * Lets {@link CurrentTransaction} know all transaction managers: those of this context as soon as
 * each is made, so that transactions while the context starts are known, too, and those of a
 * parent.
 */
final class TransactionObserver implements BeanPostProcessor, SmartInitializingSingleton {
  private final ConfigurableListableBeanFactory beans;

  TransactionObserver(ConfigurableListableBeanFactory beans) {
    this.beans = beans;
  }

  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    if (bean instanceof ConfigurableTransactionManager transactions) {
      CurrentTransaction.observe(transactions);
    }
    return bean;
  }

  @Override
  public void afterSingletonsInstantiated() {
    if (beans.getParentBeanFactory() instanceof ListableBeanFactory parent) {
      parent.getBeanProvider(ConfigurableTransactionManager.class).stream()
          .forEach(CurrentTransaction::observe);
    }
  }
}
