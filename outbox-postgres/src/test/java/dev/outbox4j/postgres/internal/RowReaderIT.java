package dev.outbox4j.postgres.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import dev.outbox4j.spi.ClaimedRow;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Instant;
import java.util.List;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Rows of a claim, in an order that the server may give them in but does not today. */
@ExtendWith(PostgresExtension.class)
class RowReaderIT {
  private static final String RETURNING = "returning ";
  private static final String COLUMNS =
      StoreSql.CLAIM.substring(StoreSql.CLAIM.indexOf(RETURNING) + RETURNING.length());

  private final TestDatabase database;

  RowReaderIT(TestDatabase database) {
    this.database = database;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void rowsAreInOrderOfDueInstantAndThenIdWhateverTheServersOrder(boolean inSlots)
      throws SQLException {
    database.update("truncate outbox");
    database.update(
        """
        insert into outbox (id, queue, payload, available_at) values
          (11, 'orders', '', '2026-01-02Z'),
          (12, 'orders', '', '2026-01-01Z'),
          (13, 'orders', '', '2026-01-01Z')
        """);

    assertThat(inSlots ? readInSlots("order by o.id desc") : read("order by o.id desc"))
        .extracting(row -> row.lease().id())
        .containsExactly(12L, 13L, 11L);
  }

  private List<ClaimedRow> read(String order) throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows = statement.executeQuery("select " + COLUMNS + " from outbox o " + order)) {
      return RowReader.read(rows, "orders", Instant.now(), false).rows();
    }
  }

  private List<ClaimedRow> readInSlots(String order) throws SQLException {
    try (Connection connection = database.plain().getConnection();
        Statement statement = connection.createStatement();
        ResultSet rows =
            statement.executeQuery("select " + COLUMNS + ", 3, 9 from outbox o " + order)) {
      return RowReader.readInSlots(rows, "orders", Instant.now()).rows();
    }
  }
}
