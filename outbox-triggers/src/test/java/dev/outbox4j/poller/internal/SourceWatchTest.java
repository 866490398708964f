package dev.outbox4j.poller.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.postgresql.ds.PGSimpleDataSource;

/** Whether what was found before still counts. */
class SourceWatchTest {
  private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");
  private static final SourceServer SERVER = new SourceServer(false, START);
  private static final Duration SLACK = Duration.ofMillis(500);

  private final List<String> warnings = new ArrayList<>();
  private final SourceWatch watch = new SourceWatch(new SourceDatabase(nowhere()), warnings::add);

  /** Asked for a timeline, which it does not tell. */
  private static PGSimpleDataSource nowhere() {
    PGSimpleDataSource source = new PGSimpleDataSource();
    source.setServerNames(new String[] {"localhost"});
    source.setPortNumbers(new int[] {1});
    return source;
  }

  /** A look so many seconds of the monotonic clock after the latest one. */
  private boolean look(SourceServer server, Instant at, int seconds) {
    long sent = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
    return watch.goesOn(server, at, sent, SLACK, true);
  }

  @Test
  void aClockThatGoesOnIsFine() {
    assertThat(look(SERVER, START, 0)).isTrue();
    assertThat(look(SERVER, START.plusSeconds(30), 30)).isTrue();
    assertThat(look(SERVER, START.plusSeconds(90), 30)).isTrue(); // set forward
    assertThat(look(SERVER, START.plusMillis(119_000), 30)).isTrue(); // corrected while it goes on
    assertThat(warnings).isEmpty();
  }

  @Test
  void aClockThatWasSetBackBetweenTwoLooksIsToldOf() {
    look(SERVER, START, 0);
    assertThat(look(SERVER, START.plusSeconds(20), 30)).isFalse();
    assertThat(warnings)
        .singleElement()
        .asString()
        .contains("the source's clock was set back by about PT", "to 2026-01-01T00:00:20Z");
    assertThat(look(SERVER, START.plusSeconds(50), 30)).isTrue();
    assertThat(warnings).hasSize(1);
  }

  @Test
  void anotherServerOrOneThatWasStartedAnewIsAnother() {
    assertThat(look(SERVER, START, 0)).isTrue();
    SourceServer restarted = new SourceServer(false, START.plusSeconds(5));
    assertThat(look(restarted, START.plusSeconds(10), 10)).isFalse();
    assertThat(look(restarted, START.plusSeconds(20), 10)).isTrue();
    assertThat(look(new SourceServer(true, START.plusSeconds(5)), START.plusSeconds(30), 10))
        .isFalse();
    assertThat(warnings).isEmpty();
  }

  @Test
  void whatIsToBeSaidOnceIsSaidOnce() {
    watch.warnOnce("a", "one");
    watch.warnOnce("a", "two");
    watch.warnOnce("b", "three");
    assertThat(warnings).containsExactly("one", "three");
  }
}
