package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.examples.chaos.Tally.Count;
import java.io.IOException;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What a subscriber's process tells the harness. */
class TallyTest {
  private final Tally tally = new Tally();

  @Test
  void isReadAsItIsWritten() {
    tally.add(Count.DEAD_CONNECTIONS);
    tally.add(Count.DEAD_CONNECTIONS);
    tally.listenerDisconnected("s1", new IOException());
    tally.storeFailed("s1", "claim", new IOException());
    tally.storeFailed("s1", "dead_letter", new IOException());

    tally.storeFailed("s1", "claim", new IOException(new SQLException("read-only", "25006")));
    tally.publicationFailed(new SQLException("no room", "53100"));
    tally.publicationFailed(new SQLException("cancelled", "57014"));
    tally.released("s1", 4);

    Map<Count, Long> read = Tally.parse(tally.toString());

    assertThat(read)
        .isEqualTo(
            Map.ofEntries(
                Map.entry(Count.DEAD_CONNECTIONS, 2L),
                Map.entry(Count.STATEMENTS_FAILED, 3L),
                Map.entry(Count.MOVES_FAILED, 1L),
                Map.entry(Count.LISTENS_LOST, 1L),
                Map.entry(Count.ROWS_GIVEN_BACK, 4L),
                Map.entry(Count.HANDLERS_SLOWED, 0L),
                Map.entry(Count.LATE_WRITES_REFUSED, 0L),
                Map.entry(Count.PUBLICATIONS_FAILED, 2L),
                Map.entry(Count.REFUSED_AS_READ_ONLY, 1L),
                Map.entry(Count.REFUSED_FOR_WANT_OF_ROOM, 1L),
                Map.entry(Count.STATEMENTS_CANCELLED, 1L)));
    assertThat(read.keySet()).containsExactlyElementsOf(Arrays.asList(Count.values()));
  }
}
