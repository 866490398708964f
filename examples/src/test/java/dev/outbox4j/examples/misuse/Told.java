package dev.outbox4j.examples.misuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.time.Duration;
import java.util.List;
import org.slf4j.LoggerFactory;

/** What the library logs at WARN and ERROR while this is open, each event without its trace. */
final class Told implements AutoCloseable {
  private final Logger logger = (Logger) LoggerFactory.getLogger("dev.outbox4j");
  private final ListAppender<ILoggingEvent> appender = new ListAppender<>();

  Told() {
    appender.setContext(logger.getLoggerContext());
    appender.start();
    logger.addAppender(appender);
  }

  /** The lines so far: the level, a space and the text. */
  List<String> lines() {
    synchronized (appender) { // as the appender does when it adds
      return appender.list.stream()
          .filter(event -> event.getLevel().isGreaterOrEqual(Level.WARN))
          .map(event -> event.getLevel() + " " + event.getFormattedMessage())
          .toList();
    }
  }

  /** Waits for a line that has all of these. */
  void awaitLine(String... parts) {
    awaitLine(Duration.ofSeconds(20), parts);
  }

  void awaitLine(Duration longest, String... parts) {
    await()
        .atMost(longest)
        .untilAsserted(
            () -> assertThat(lines()).anySatisfy(line -> assertThat(line).contains(parts)));
  }

  @Override
  public void close() {
    logger.detachAppender(appender);
    appender.stop();
  }
}
