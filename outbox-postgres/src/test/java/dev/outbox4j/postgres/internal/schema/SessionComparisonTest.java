package dev.outbox4j.postgres.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.SchemaFault;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What is said of servers that no test can start. */
class SessionComparisonTest {
  @Test
  void theOldestServerIsOfVersionThirteen() {
    assertThat(faults(130_000)).isEmpty();
    assertThat(faults(120_022))
        .extracting(SchemaFault::toString)
        .containsExactly(
            "server: expected PostgreSQL 13 or later, found version 12; to fix it: upgrade the server");
  }

  private static List<SchemaFault> faults(int serverVersion) {
    List<SchemaFault> faults = new ArrayList<>();
    new SessionComparison(faults)
        .compare(new Live.Session("me", "public", serverVersion, false, false));
    return faults;
  }
}
