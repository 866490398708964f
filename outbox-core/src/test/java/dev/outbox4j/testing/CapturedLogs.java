package dev.outbox4j.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.ThrowableProxyUtil;
import ch.qos.logback.core.AppenderBase;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Predicate;
import org.slf4j.LoggerFactory;

/**
 * All that is logged while it is open, as it would be printed: Outbox4j's own loggers at TRACE, the
 * others as they are configured.
 */
public final class CapturedLogs implements AutoCloseable {
  private final Logger root = (Logger) LoggerFactory.getLogger(org.slf4j.Logger.ROOT_LOGGER_NAME);
  private final Logger ours = (Logger) LoggerFactory.getLogger("dev.outbox4j");
  private final List<String> lines = new CopyOnWriteArrayList<>();
  private final Map<String, Map<String, String>> contexts = new ConcurrentHashMap<>();
  private final AppenderBase<ILoggingEvent> appender = new Appender();
  private final Level before = ours.getLevel();

  /** Begins. */
  public CapturedLogs() {
    appender.setContext(root.getLoggerContext());
    appender.start();
    ours.setLevel(Level.TRACE);
    root.addAppender(appender);
  }

  /** Returns the events so far, each with its stack trace. */
  public List<String> lines() {
    return List.copyOf(lines);
  }

  /** Returns the context of a line. */
  public Map<String, String> contextOf(String line) {
    return contexts.get(line);
  }

  /**
   * Waits for such an event: what a thread logs of a change comes after the change, so a test that
   * has seen the one may not yet see the other.
   */
  public void awaitLine(Predicate<String> wanted) {
    await().untilAsserted(() -> assertThat(lines()).anyMatch(wanted));
  }

  /** Returns what is printed of a failure: all causes, and what was suppressed. */
  public static String printed(Throwable failure) {
    StringWriter text = new StringWriter();
    failure.printStackTrace(new PrintWriter(text, true));
    return text.toString();
  }

  @Override
  public void close() {
    root.detachAppender(appender);
    ours.setLevel(before);
    appender.stop();
  }

  private final class Appender extends AppenderBase<ILoggingEvent> {
    @Override
    protected void append(ILoggingEvent event) {
      String line =
          "%s [%s] %s - %s"
              .formatted(
                  event.getLevel(),
                  event.getThreadName(),
                  event.getLoggerName(),
                  event.getFormattedMessage());
      String whole =
          event.getThrowableProxy() == null
              ? line
              : line + "\n" + ThrowableProxyUtil.asString(event.getThrowableProxy());
      contexts.put(whole, Map.copyOf(event.getMDCPropertyMap()));
      lines.add(whole);
    }
  }
}
