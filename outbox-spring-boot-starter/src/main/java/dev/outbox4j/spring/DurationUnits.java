package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import java.lang.reflect.RecordComponent;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.core.env.Environment;

/**
 * Refuses durations without a unit. Spring Boot takes them for milliseconds; who means seconds
 * would have handlers end after a thousandth of the time, and each message fail.
 */
final class DurationUnits {
  private static final ConfigurationPropertyName ROOT = ConfigurationPropertyName.of("outbox4j");
  private static final Pattern NUMBER = Pattern.compile("[+-]?0*[1-9][0-9]*");

  private DurationUnits() {}

  /**
   * Looks at the text of each duration, wherever it comes from. Zero needs no unit.
   *
   * @param queues the queues that have settings of their own
   * @throws OutboxException if one has no unit
   */
  static void require(Environment environment, Set<String> queues) {
    List<ConfigurationPropertyName> durations = new ArrayList<>();
    addDurations(ROOT, OutboxProperties.class, durations);
    for (String queue : queues) {
      addDurations(
          ROOT.append("queues").append("[" + queue + "]"),
          OutboxProperties.Subscriber.class,
          durations);
    }
    Binder binder = Binder.get(environment);
    List<String> bare = new ArrayList<>();
    for (ConfigurationPropertyName name : durations) {
      String text = binder.bind(name, Bindable.of(String.class)).orElse("");
      if (NUMBER.matcher(text).matches()) {
        bare.add(name + "=" + text);
      }
    }
    if (!bare.isEmpty()) {
      throw new OutboxException(
          String.join(", ", bare)
              + " has no unit; give it one, such as 30s, or 500ms for milliseconds");
    }
  }

  private static void addDurations(
      ConfigurationPropertyName group,
      Class<?> settings,
      List<ConfigurationPropertyName> durations) {
    for (RecordComponent component : settings.getRecordComponents()) {
      ConfigurationPropertyName name = group.append(SettingNames.dashed(component.getName()));
      if (component.getType() == Duration.class) {
        durations.add(name);
      } else if (component.getType().isRecord()) {
        addDurations(name, component.getType(), durations);
      }
    }
  }
}
