package dev.outbox4j.postgres.internal.schema;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.SchemaFault;
import dev.outbox4j.postgres.notify.internal.ListenConnection;
import dev.outbox4j.postgres.notify.internal.ListenDriver;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.time.Duration;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a failure's SQLSTATE says, also where its outer exception has none, as a pool's. */
class UnansweredTest {
  private final Exception ofAPool =
      new SQLTransientConnectionException(
          "no connection is available",
          new SQLException("password authentication failed", "28P01"));

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          08006 | database not reachable          | check that the server runs
          57P01 | database not reachable          | check that the server runs
          57014 | no answer in time               | look for a lock on the tables
          28P01 | database refused the connection | check user, password and database name
          3D000 | database refused the connection | check user, password and database name
          53300 | database refused the connection | the server takes no more connections
          42501 | permission denied               | look up the SQLSTATE
          XX000 | the statement failed            | look up the SQLSTATE
          """)
  void tellsWhatHappenedAndWhatToDo(String state, String meaning, String remedy) {
    SchemaFault fault = Unanswered.fault(new SQLException("words", state));

    assertThat(fault.found()).startsWith(meaning + " (SQLSTATE " + state + ", SQLException)");
    assertThat(fault.remedy()).startsWith(remedy);
  }

  @Test
  void ofTheServersWordsOnlyWhatItSaysOfAStatementIsTold() {
    assertThat(Unanswered.found(new SQLException("no such table\n  Position: 15", "42P01")))
        .isEqualTo("the statement failed (SQLSTATE 42P01, SQLException): no such table");
    assertThat(Unanswered.found(new SQLException("10.0.0.1 is at its end", "XX000")))
        .isEqualTo("the statement failed (SQLSTATE XX000, SQLException)");
  }

  @Test
  void isThatOfTheRootInTheSchemaReport() {
    SchemaFault fault = Unanswered.fault(ofAPool);

    assertThat(fault.found())
        .isEqualTo(
            "database refused the connection (SQLSTATE 28P01, SQLTransientConnectionException)");
    assertThat(fault.remedy()).contains("password");
  }

  @Test
  void isThatOfTheRootForListen() {
    ListenDriver driver =
        new ListenDriver() {
          @Override
          public String name() {
            return "a driver";
          }

          @Override
          public ListenConnection open(Consumer<String> onNotification, Duration limit) {
            throw new AssertionError();
          }
        };

    assertThat(driver.sqlState(new IllegalStateException("wrapped", ofAPool))).isEqualTo("28P01");
  }

  @Test
  void isNoneWhereThereIsNone() {
    assertThat(Unanswered.fault(new SQLException("no route")).found())
        .isEqualTo("database not reachable (SQLException)");
  }
}
