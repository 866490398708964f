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

/** The SQLSTATE of a failure whose outer exception has none, as a pool's. */
class UnansweredTest {
  private final Exception ofAPool =
      new SQLTransientConnectionException(
          "no connection is available",
          new SQLException("password authentication failed", "28P01"));

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
