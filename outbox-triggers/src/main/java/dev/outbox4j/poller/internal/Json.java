package dev.outbox4j.poller.internal;

import java.math.BigDecimal;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Writes JSON: numbers and booleans as such, bytes in Base64, everything else as its text. */
final class Json {
  private final StringBuilder text = new StringBuilder();

  private Json() {}

  static String object(Map<String, ? extends @Nullable Object> values) {
    Json json = new Json();
    json.write(values);
    return json.text.toString();
  }

  static String array(List<String> values) {
    Json json = new Json();
    json.write(values);
    return json.text.toString();
  }

  private void write(@Nullable Object value) {
    if (value == null) {
      text.append("null");
    } else if (value instanceof Map<?, ?> map) {
      writeObject(map);
    } else if (value instanceof List<?> list) {
      writeArray(list);
    } else if (value instanceof BigDecimal number) {
      text.append(number); // an exponent is allowed
    } else if (value instanceof Boolean || isInteger(value) || isFinite(value)) {
      text.append(value);
    } else if (value instanceof byte[] bytes) {
      writeString(Base64.getEncoder().encodeToString(bytes));
    } else {
      writeString(value.toString());
    }
  }

  private static boolean isInteger(Object value) {
    return value instanceof Short || value instanceof Integer || value instanceof Long;
  }

  private static boolean isFinite(Object value) {
    return (value instanceof Float || value instanceof Double)
        && Double.isFinite(((Number) value).doubleValue());
  }

  private void writeObject(Map<?, ?> map) {
    text.append('{');
    String separator = "";
    for (Map.Entry<?, ?> each : map.entrySet()) {
      text.append(separator);
      writeString(String.valueOf(each.getKey()));
      text.append(':');
      write(each.getValue());
      separator = ",";
    }
    text.append('}');
  }

  private void writeArray(List<?> list) {
    text.append('[');
    String separator = "";
    for (Object each : list) {
      text.append(separator);
      write(each);
      separator = ",";
    }
    text.append(']');
  }

  private void writeString(String value) {
    text.append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      switch (c) {
        case '"' -> text.append("\\\"");
        case '\\' -> text.append("\\\\");
        case '\n' -> text.append("\\n");
        case '\r' -> text.append("\\r");
        case '\t' -> text.append("\\t");
        default -> {
          if (c < 0x20) {
            text.append(String.format(java.util.Locale.ROOT, "\\u%04x", (int) c));
          } else {
            text.append(c);
          }
        }
      }
    }
    text.append('"');
  }
}
