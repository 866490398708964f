package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.SubscriberEvents;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.internal.settings.SettingFaults;
import dev.outbox4j.migrations.DeadLetterMigrations;
import dev.outbox4j.postgres.OutboxRole;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.spi.HandlerTransactions;
import dev.outbox4j.spi.NotificationSource;
import dev.outbox4j.spi.PayloadCodec;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.util.function.SingletonSupplier;

/** Makes a subscriber of each queue that has a handler. */
final class SubscriberFactory {
  private final ConfigurableListableBeanFactory beans;
  private final OutboxProperties properties;
  private final PostgresStore store;
  private final boolean virtualByDefault;
  private final Supplier<HandlerTransactions<Connection>> transactions;
  private final ObjectProvider<NotificationSource> source;
  private final ObjectProvider<PayloadCodec> codec;
  private final ObjectProvider<SubscriberEvents> observers;
  private final ObjectProvider<OutboxSubscriberCustomizer> customizers;

  SubscriberFactory(
      ConfigurableListableBeanFactory beans,
      OutboxProperties properties,
      PostgresStore store,
      boolean virtualByDefault) {
    this.beans = beans;
    this.properties = properties;
    this.store = store;
    this.virtualByDefault = virtualByDefault;
    this.transactions =
        SingletonSupplier.of(
            () ->
                PostgresOutbox.on(store.dataSource(), store.table())
                    .transactions(HandlerTransactionManager.of(beans, store.dataSource())));
    this.source = beans.getBeanProvider(NotificationSource.class);
    this.codec = beans.getBeanProvider(PayloadCodec.class);
    this.observers = beans.getBeanProvider(SubscriberEvents.class);
    this.customizers = beans.getBeanProvider(OutboxSubscriberCustomizer.class);
  }

  /**
   * Returns the subscribers, in the order of their queues, and after them those that are beans of
   * this context. A parent's are started by the parent.
   *
   * @throws OutboxException if a handler or a setting breaks a rule
   */
  List<OutboxSubscriber> create() {
    Map<String, List<HandlerMethod>> methods = HandlerMethods.of(beans);
    requireHandled("outbox4j.queues has settings for", properties.queues().keySet(), methods);
    requireHandled("outbox4j.ordered-queues names", properties.orderedQueues(), methods);
    Set<String> faults = new LinkedHashSet<>();
    methods.keySet().forEach(queue -> settings(queue).addContradictions(faults));
    Contradictions.refuse(faults); // of queues that have no settings of their own
    List<OutboxSubscriber> subscribers = new ArrayList<>();
    methods.forEach((queue, handlers) -> subscribers.add(create(queue, handlers)));
    own().forEach(name -> subscribers.add(beans.getBean(name, OutboxSubscriber.class)));
    return List.copyOf(subscribers);
  }

  /** Beans of this context, without the parents'. */
  private List<String> own() {
    return Arrays.stream(beans.getBeanNamesForType(OutboxSubscriber.class))
        .filter(name -> !ScopedProxyUtils.isScopedTarget(name))
        .toList();
  }

  /**
   * Returns what the service is there for, as far as its beans tell. Of a subscriber that is a bean
   * it is not known what it needs: it may be one of another outbox.
   *
   * @param created all subscribers
   */
  Set<OutboxRole> roles(List<OutboxSubscriber> created) {
    Set<OutboxRole> roles = EnumSet.noneOf(OutboxRole.class);
    if (created.isEmpty() || isTemplateTaken()) {
      roles.add(OutboxRole.PUBLISHER);
    }
    if (properties.autoStart() && created.size() > own().size()) {
      roles.add(OutboxRole.SUBSCRIBER);
    }
    return roles;
  }

  private boolean isTemplateTaken() {
    return beans.getBeansOfType(OutboxTemplate.class, true, false).entrySet().stream()
        .anyMatch(
            template ->
                template.getValue().publishesIn(store.dataSource())
                    && beans.getDependentBeans(template.getKey()).length > 0);
  }

  private void requireHandled(
      String where, Set<String> queues, Map<String, List<HandlerMethod>> methods) {
    Set<String> unheard = new TreeSet<>(queues);
    unheard.removeAll(methods.keySet());
    if (!unheard.isEmpty() && !properties.allowUnhandledQueues()) {
      throw new OutboxException(
          "%s %s, and no @OutboxHandler handles that queue (handled are %s); correct the name, or drop it"
              .formatted(where, unheard, methods.keySet()));
    }
  }

  private OutboxSubscriber create(String queue, List<HandlerMethod> handlers) {
    OutboxSubscriber.Builder builder = OutboxSubscriber.builder(queue);
    listen(builder);
    SubscriberSettings settings = settings(queue);
    set(builder, queue, handlers, settings::applyTo);
    try {
      return builder.build();
    } catch (SettingFaults e) {
      throw new OutboxException(new BuildRefusal(queue, handlers, settings).of(e), e);
    }
  }

  /** The queues that have a handler, in the order of their names. */
  Set<String> queues() {
    return HandlerMethods.of(beans).keySet();
  }

  /** All that {@link #create()} sets, but nothing that listens and no threads. */
  OutboxSubscriber.Builder builder(String queue) {
    List<HandlerMethod> handlers = HandlerMethods.of(beans).get(queue);
    if (handlers == null) {
      throw new IllegalArgumentException(
          "No @OutboxHandler of this context handles queue '%s'; handled are %s"
              .formatted(queue, queues()));
    }
    OutboxSubscriber.Builder builder = OutboxSubscriber.builder(queue);
    set(builder, queue, handlers, settings(queue)::applyWithoutThreads);
    return builder;
  }

  private void set(
      OutboxSubscriber.Builder builder,
      String queue,
      List<HandlerMethod> handlers,
      Consumer<OutboxSubscriber.Builder> settings) {
    builder.store(store);
    if (properties.deleteTerminalFailures()) {
      builder.deleteTerminalFailures();
    } else {
      builder.deadLetters(deadLetters());
    }
    codec.ifAvailable(builder::codec);
    observers.orderedStream().forEach(builder::events);
    if (properties.pausable()) {
      builder.pausable();
    }
    settings.accept(builder);
    customizers
        .orderedStream()
        .forEach(
            customizer ->
                requireTaken(
                    "The OutboxSubscriberCustomizer %s, called for queue '%s'"
                        .formatted(declaring(customizer), queue),
                    () -> customizer.customize(queue, builder)));
    handlers.forEach(
        handler -> requireTaken(handler.toString(), () -> handler.addTo(builder, transactions)));
  }

  /** A lambda's own name says nothing, that of the class around it does. */
  private static String declaring(OutboxSubscriberCustomizer customizer) {
    return customizer.getClass().getName().replaceFirst("\\$\\$Lambda.*", "");
  }

  private static void requireTaken(String whose, Runnable setting) {
    try {
      setting.run();
    } catch (IllegalArgumentException | IllegalStateException e) {
      throw new OutboxException(whose + ": " + e.getMessage(), e);
    }
  }

  private SubscriberSettings settings(String queue) {
    return SubscriberSettings.of(properties, queue, virtualByDefault);
  }

  /** Where nothing may ever start, where to listen is looked for at the start only. */
  private void listen(OutboxSubscriber.Builder builder) {
    if (properties.autoStart()) {
      source.ifAvailable(builder::listen);
    } else if (BeanFactoryUtils.beanNamesForTypeIncludingAncestors(
                beans, NotificationSource.class, true, false)
            .length
        > 0) {
      builder.listen((channel, listener) -> source.getObject().listen(channel, listener));
    }
  }

  private DeadLetterQueue deadLetters() {
    DeadLetterMigrations table = Tables.migrations(properties).deadLetters();
    return DeadLetterQueue.in(table.schema(), table.table());
  }
}
