package dev.outbox4j.examples.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.postgresql.ds.PGSimpleDataSource;

/** What must not be left on the server is left there. */
@ExtendWith(PostgresExtension.class)
@Tag("once")
class SessionsIT {
  private static final String POOLED = "^(s|publisher-)[13579][.][0-9]+$";

  private final TestDatabase database;
  private final List<Connection> open = new ArrayList<>();

  SessionsIT(TestDatabase database) {
    this.database = database;
  }

  @AfterEach
  void close() throws SQLException {
    for (Connection connection : open) {
      connection.close();
    }
  }

  @Test
  void tellsWhoHasMoreThanAllowed() throws SQLException {
    open("s0.1");
    open("s0.1");
    open("s0.1-effects");

    assertThat(excess(Map.of("s0.1", 2, "s0.1-effects", 1), "")).isEmpty();
    assertThat(excess(Map.of("s0.1", 1, "s0.1-effects", 1), ""))
        .containsExactly("s0.1 has 2 sessions");
  }

  @Test
  void tellsThatAnEndedProcessHasAnyAtAll() throws SQLException {
    open("s0.1");
    open("s0.7");

    assertThat(excess(Map.of("s0.7", 3), "")).containsExactly("s0.1 has 1 sessions");
  }

  @Test
  void countsTogetherWhatGoesThroughThePooler() throws SQLException {
    open("s1.1");
    open("s3.8");
    open("publisher-1.6");

    assertThat(excess(Map.of(Sessions.POOLER, 3), POOLED)).isEmpty();
    assertThat(excess(Map.of(Sessions.POOLER, 2), POOLED))
        .containsExactly("the pooler has 3 sessions");
  }

  /** Sessions of the test before may still be ending. */
  @BeforeEach
  void awaitNoOther() {
    await().until(() -> excess(Map.of(), "").isEmpty());
  }

  private List<String> excess(Map<String, Integer> limits, String pooled) throws SQLException {
    return new Sessions(database.plain()).excess(limits, pooled);
  }

  private void open(String application) throws SQLException {
    PGSimpleDataSource source = database.plain();
    source.setApplicationName(application);
    open.add(source.getConnection());
  }
}
