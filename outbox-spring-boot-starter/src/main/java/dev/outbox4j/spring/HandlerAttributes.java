package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import java.lang.reflect.Method;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.util.ClassUtils;

/**
 * What an {@link OutboxHandler} says, with its placeholders resolved, and checked.
 *
 * @param queue the queue
 * @param types the types; none: all that have no method of their own
 * @param linger how long a batch waits; empty if it does not
 */
record HandlerAttributes(String queue, List<String> types, String linger) {

  /**
   * Reads them.
   *
   * @throws OutboxException if one is no name, or is named twice
   */
  static HandlerAttributes of(
      OutboxHandler handler, Method method, Class<?> beanClass, ConfigurableBeanFactory beans) {
    String name =
        "@OutboxHandler " + ClassUtils.getUserClass(beanClass).getName() + "." + method.getName();
    try {
      String queue = resolved(beans, "queue", handler.queue());
      OutboxMessage.Builder message = OutboxMessage.to(queue); // which knows what names may be
      Set<String> types = new LinkedHashSet<>();
      for (String type : handler.type()) {
        String resolved = resolved(beans, "type", type);
        message.type(resolved);
        if (!types.add(resolved)) {
          throw new IllegalArgumentException(
              "type '" + resolved + "' is named twice; name it once");
        }
      }
      String linger = resolved(beans, "linger", handler.linger());
      return new HandlerAttributes(queue, List.copyOf(types), linger);
    } catch (IllegalArgumentException e) {
      throw new OutboxException(name + ": " + e.getMessage(), e);
    }
  }

  private static String resolved(ConfigurableBeanFactory beans, String attribute, String text) {
    String resolved;
    try {
      resolved = beans.resolveEmbeddedValue(text);
    } catch (IllegalArgumentException unknown) {
      throw unresolved(attribute, text, unknown);
    }
    if (resolved == null) {
      return "";
    }
    if (resolved.contains("${")) { // a context may leave what it does not know as it is
      throw unresolved(attribute, text, null);
    }
    return resolved;
  }

  private static IllegalArgumentException unresolved(
      String attribute, String text, @Nullable Throwable cause) {
    return new IllegalArgumentException(
        attribute
            + " = \""
            + text
            + "\" names a property that is not set; set it, or give it a default: ${name:default}",
        cause);
  }
}
