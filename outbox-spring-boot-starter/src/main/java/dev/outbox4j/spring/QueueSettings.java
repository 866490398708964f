package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.spring.OutboxProperties.Retry;
import dev.outbox4j.spring.OutboxProperties.Subscriber;
import java.lang.reflect.RecordComponent;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.core.env.Environment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/** The names of settings below {@code outbox4j.queues}. */
final class QueueSettings {
  private static final ConfigurationPropertyName QUEUES =
      ConfigurationPropertyName.of("outbox4j.queues");
  private static final Set<ConfigurationPropertyName> KNOWN = known();

  private QueueSettings() {}

  private static Set<ConfigurationPropertyName> known() {
    Set<ConfigurationPropertyName> names = new HashSet<>();
    components(Subscriber.class).forEach(names::add);
    ConfigurationPropertyName retry = ConfigurationPropertyName.of("retry");
    names.remove(retry);
    components(Retry.class).map(retry::append).forEach(names::add);
    return Set.copyOf(names);
  }

  /** Names are compared without their dashes. */
  private static Stream<ConfigurationPropertyName> components(Class<?> settings) {
    return Stream.of(settings.getRecordComponents())
        .map(RecordComponent::getName)
        .map(name -> name.toLowerCase(Locale.ROOT))
        .map(ConfigurationPropertyName::of);
  }

  /**
   * Refuses settings that nobody would read: a slip, or the rest of a queue's name that has dots.
   * Variables of the system's environment are passed by, since their names are ambiguous.
   */
  static void requireKnown(Environment environment) {
    Set<ConfigurationPropertyName> unknown = new TreeSet<>();
    for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
      if (source instanceof IterableConfigurationPropertySource names
          && !(source.getUnderlyingSource() instanceof SystemEnvironmentPropertySource)) {
        names.stream().filter(QueueSettings::isUnknown).forEach(unknown::add);
      }
    }
    if (!unknown.isEmpty()) {
      throw new OutboxException(
          "outbox4j.queues has no setting of the name %s; correct it, and put the name of a queue that has dots into brackets: outbox4j.queues[a.b].workers"
              .formatted(unknown));
    }
  }

  private static boolean isUnknown(ConfigurationPropertyName name) {
    int ofQueue = QUEUES.getNumberOfElements() + 1;
    return QUEUES.isAncestorOf(name)
        && name.getNumberOfElements() > ofQueue
        && !KNOWN.contains(name.subName(ofQueue));
  }
}
