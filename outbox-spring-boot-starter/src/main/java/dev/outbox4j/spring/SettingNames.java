package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.core.env.Environment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/** The names of settings below {@code outbox4j}. */
final class SettingNames {
  private static final ConfigurationPropertyName ROOT = ConfigurationPropertyName.of("outbox4j");
  private static final ConfigurationPropertyName SUBSCRIBER = ROOT.append("subscriber");
  private static final ConfigurationPropertyName QUEUES = ROOT.append("queues");
  private static final int OF_QUEUE = QUEUES.getNumberOfElements() + 1;

  /** Groups included; compared without their dashes. Those of a queue are those of all. */
  private static final Set<ConfigurationPropertyName> KNOWN = Set.copyOf(known());

  private SettingNames() {}

  private static List<ConfigurationPropertyName> known() {
    List<ConfigurationPropertyName> names = new ArrayList<>();
    addComponents(ROOT, OutboxProperties.class, names);
    return names;
  }

  private static void addComponents(
      ConfigurationPropertyName group, Class<?> settings, List<ConfigurationPropertyName> names) {
    for (RecordComponent component : settings.getRecordComponents()) {
      ConfigurationPropertyName name = group.append(dashed(component.getName()));
      names.add(name);
      if (component.getType().isRecord()) {
        addComponents(name, component.getType(), names);
      }
    }
  }

  static String dashed(String camelCase) {
    return camelCase.replaceAll("([A-Z])", "-$1").toLowerCase(Locale.ROOT);
  }

  /**
   * Refuses settings that nobody would read: a slip, or the rest of a queue's name that has dots.
   * Variables of the system's environment are passed by: their names are ambiguous, and a platform
   * may set some of its own, such as {@code OUTBOX4J_SERVICE_HOST} for a service of that name.
   *
   * @throws OutboxException if there are any, with names that are near
   */
  static void requireKnown(Environment environment, ConfigurableListableBeanFactory beans) {
    Set<ConfigurationPropertyName> unknown = new TreeSet<>();
    for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
      if (source instanceof IterableConfigurationPropertySource names
          && !(source.getUnderlyingSource() instanceof SystemEnvironmentPropertySource)) {
        names.stream().filter(SettingNames::isUnknown).forEach(unknown::add);
      }
    }
    if (!unknown.isEmpty()) {
      Set<ConfigurationPropertyName> others = groupsOfOthers(beans);
      unknown.removeIf(name -> others.stream().anyMatch(group -> isIn(group, name)));
    }
    if (!unknown.isEmpty()) {
      throw new OutboxException(refusal(unknown));
    }
  }

  private static boolean isUnknown(ConfigurationPropertyName name) {
    return ROOT.isAncestorOf(name) && !KNOWN.contains(ofAll(name));
  }

  /** The setting of all queues that a setting of one queue stands for. */
  private static ConfigurationPropertyName ofAll(ConfigurationPropertyName name) {
    if (!QUEUES.isAncestorOf(name)) {
      return name;
    }
    return name.getNumberOfElements() == OF_QUEUE
        ? QUEUES
        : SUBSCRIBER.append(name.subName(OF_QUEUE));
  }

  /** Libraries and services may keep settings of their own below this name. */
  private static Set<ConfigurationPropertyName> groupsOfOthers(
      ConfigurableListableBeanFactory beans) {
    Set<ConfigurationPropertyName> groups = new TreeSet<>();
    for (String bean : beans.getBeanDefinitionNames()) {
      ConfigurationProperties settings =
          beans.findAnnotationOnBean(bean, ConfigurationProperties.class, false);
      Class<?> type = beans.getType(bean, false);
      if (settings != null && type != OutboxProperties.class) {
        groups.add(ConfigurationPropertyName.adapt(settings.prefix(), '.'));
      }
    }
    return groups;
  }

  private static boolean isIn(ConfigurationPropertyName group, ConfigurationPropertyName name) {
    return (ROOT.equals(group) || ROOT.isAncestorOf(group))
        && (group.equals(name) || group.isAncestorOf(name));
  }

  private static String refusal(Set<ConfigurationPropertyName> unknown) {
    StringBuilder text = new StringBuilder("There is no setting");
    String separator = " ";
    for (ConfigurationPropertyName name : unknown) {
      text.append(separator).append(name);
      NearName.of(ofAll(name), KNOWN)
          .ifPresent(near -> text.append(" (").append(inQueueOf(name, near)).append(" is near)"));
      separator = ", ";
    }
    text.append("; correct the name, or drop it");
    if (unknown.stream().anyMatch(QUEUES::isAncestorOf)) {
      text.append(
          ", and put the name of a queue that has dots into brackets:"
              + " outbox4j.queues[a.b].workers");
    }
    return text.toString();
  }

  private static ConfigurationPropertyName inQueueOf(
      ConfigurationPropertyName name, ConfigurationPropertyName near) {
    return QUEUES.isAncestorOf(name) && SUBSCRIBER.isAncestorOf(near)
        ? name.chop(OF_QUEUE).append(near.subName(SUBSCRIBER.getNumberOfElements()))
        : near;
  }
}
