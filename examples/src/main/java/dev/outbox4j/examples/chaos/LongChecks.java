package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import javax.sql.DataSource;

/**
 * When checks that take a while began and ended, by what their processes have written down: an
 * instance may expire in one, and ends behind it. One that has no end was ended with its process.
 */
final class LongChecks {
  private static final long NONE = -1;

  private final Map<Check, Long> ended = new HashMap<>();

  private LongChecks() {}

  private record Check(String process, long id, long began) {}

  /** Reads those of all processes. */
  static LongChecks read(Path directory) throws IOException {
    LongChecks checks = new LongChecks();
    RunLog.read(
        directory,
        RunLog.BEGUN,
        (process, run) -> checks.ended.put(new Check(process, run.no(), run.began()), NONE));
    checks.readEnds(directory, RunLog.DONE);
    checks.readEnds(directory, RunLog.FAILED);
    return checks;
  }

  private void readEnds(Path directory, String kind) throws IOException {
    RunLog.read(
        directory,
        kind,
        (process, run) ->
            ended.computeIfPresent(
                new Check(process, run.no(), run.began()), (check, none) -> run.ended()));
  }

  /** Writes them to a table, with null for an end that is not known. */
  void write(DataSource direct) throws SQLException {
    try (Connection connection = direct.getConnection();
        PreparedStatement insert =
            connection.prepareStatement(
                "insert into long_checks (process, id, began, ended) values (?, ?,"
                    + " timestamptz 'epoch' + ? * interval '1 microsecond',"
                    + " timestamptz 'epoch' + nullif(?, -1) * interval '1 microsecond')")) {
      connection.setAutoCommit(false);
      for (Map.Entry<Check, Long> check : ended.entrySet()) {
        insert.setString(1, check.getKey().process());
        insert.setLong(2, check.getKey().id());
        insert.setLong(3, check.getKey().began());
        insert.setLong(4, check.getValue());
        insert.addBatch();
      }
      insert.executeBatch();
      connection.commit();
    }
  }
}
