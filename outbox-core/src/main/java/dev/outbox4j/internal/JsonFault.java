package dev.outbox4j.internal;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Says what is wrong with a JSON payload by kind and place. The payload is not quoted, nor names
 * that it chose.
 *
 * @param bytes the size of the payload
 * @param type what it should have been
 * @param kind the exception's class
 * @param about the class that cannot be made, if that is the fault
 * @param refusal what a constructor or setter of that class threw, if one did
 * @param line from 1, or less if it is not known
 * @param column from 1
 * @param path what leads to the fault
 */
public record JsonFault(
    int bytes,
    Type type,
    Class<?> kind,
    @Nullable String about,
    @Nullable Refusal refusal,
    int line,
    int column,
    List<Step> path) {

  /** The steps that are told of a path; a payload may be nested deeply. */
  public static final int MOST_STEPS = 10;

  /**
   * A step of a path.
   *
   * @param name of the property; null in an array
   * @param index in the array
   * @param foreign whether the payload chose the name
   */
  public record Step(@Nullable String name, int index, boolean foreign) {

    /**
     * Makes a step.
     *
     * @param from the object or the class that has the property
     * @param name of the property; null in an array
     * @param index in the array
     * @return a step that says the name only if the class has something by that name
     */
    public static Step of(@Nullable Object from, @Nullable String name, int index) {
      try {
        return new Step(name, index, name != null && !declares(from, name));
      } catch (LinkageError unknown) { // a member of a class that is not there
        return new Step(name, index, true);
      }
    }

    private static boolean declares(@Nullable Object from, String name) {
      if (from == null || from instanceof Map) {
        return false;
      }
      String plain = plain(name);
      for (Class<?> type = from instanceof Class<?> given ? given : from.getClass();
          type != null && type != Object.class;
          type = type.getSuperclass()) {
        if (Stream.concat(
                Stream.of(type.getDeclaredFields()).map(Field::getName),
                Stream.of(type.getDeclaredMethods()).map(Method::getName).map(Step::property))
            .anyMatch(declared -> plain(declared).equals(plain))) {
          return true;
        }
      }
      return false;
    }

    private static String property(String method) {
      return ACCESSOR.matcher(method).replaceFirst("");
    }

    /** Whatever naming strategy there is. */
    private static String plain(String name) {
      return SEPARATOR.matcher(name).replaceAll("").toLowerCase(Locale.ROOT);
    }

    private String text() {
      if (name == null) {
        return "[" + index + "]";
      }
      return foreign ? "[…]" : "[\"" + name + "\"]";
    }
  }

  /**
   * What code of the body's class threw; its message may quote the payload.
   *
   * @param kind the exception's class
   * @param place where it was thrown: the nearest place outside the JDK
   */
  public record Refusal(String kind, String place) {

    /** {@return what the code threw; null if nothing did} */
    public static @Nullable Refusal of(@Nullable Throwable thrown) {
      return thrown == null ? null : new Refusal(thrown.getClass().getName(), placeOf(thrown));
    }

    private static String placeOf(Throwable thrown) {
      try {
        return Stream.of(thrown.getStackTrace())
            .filter(frame -> !JDK.matcher(frame.getClassName()).lookingAt())
            .findFirst()
            .map(
                frame ->
                    " at "
                        + frame.getClassName()
                        + "."
                        + frame.getMethodName()
                        + (frame.getLineNumber() < 0 ? "" : ":" + frame.getLineNumber()))
            .orElse("");
      } catch (RuntimeException unreadable) { // the exception's own code
        return "";
      }
    }

    private String text() {
      return ": " + kind + place;
    }
  }

  /** Checks of an index, for one, throw in {@code jdk.internal}. */
  private static final Pattern JDK = Pattern.compile("(java|jdk|sun|com\\.sun)\\.");

  private static final Pattern ACCESSOR = Pattern.compile("^(get|set|is|with)(?=[A-Z])");
  private static final Pattern SEPARATOR = Pattern.compile("[_\\-.]");

  /** {@return the fault in words, that begin with what is wrong} */
  public String text(String fault) {
    StringBuilder text =
        new StringBuilder("payload of ")
            .append(bytes)
            .append(" bytes ")
            .append(fault)
            .append(' ')
            .append(type.getTypeName())
            .append(": ")
            .append(kind.getSimpleName());
    if (about != null) {
      text.append(" about ").append(about);
    }
    if (line >= 0) {
      text.append(" at line ").append(line).append(", column ").append(column);
    }
    if (!path.isEmpty()) {
      text.append(", in ");
      path.forEach(step -> text.append(step.text()));
      text.append(path.size() == MOST_STEPS ? "…" : "");
    }
    if (refusal != null) {
      text.append(refusal.text());
    }
    return text.toString();
  }

  /** {@return that JSON null came where a body is expected} */
  public static String nullBody(int bytes, Type type) {
    return "payload of "
        + bytes
        + " bytes is JSON null where "
        + type.getTypeName()
        + " is expected";
  }
}
