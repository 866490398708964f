package dev.outbox4j.examples.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.postgres.testing.PostgresExtension;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(PostgresExtension.class)
class ExampleDatabaseIT {
  private final TestDatabase database;

  ExampleDatabaseIT(TestDatabase database) {
    this.database = database;
  }

  private ExampleDatabase open() throws SQLException {
    String url =
        "jdbc:postgresql://%s:%d/%s"
            .formatted(database.server().host(), database.server().port(), database.name());
    return ExampleDatabase.open(
        "outbox_example", url, database.server().user(), database.server().password(), null);
  }

  @Test
  void ofTheUsersDatabaseItTouchesASchemaOfItsOwnWhichIsMadeAnew() throws Exception {
    long before = database.count("pg_tables where schemaname = 'public'");
    for (int run = 1; run <= 2; run++) {
      try (ExampleDatabase example = open();
          Connection connection = example.unpooled().getConnection();
          Statement statement = connection.createStatement()) {
        assertThat(connection.getSchema()).isEqualTo(example.schema());
        statement.execute("create table things (id int)"); // fails if it were there
      }
    }

    assertThat(database.count("outbox_example.things")).isZero();
    assertThat(database.count("pg_tables where schemaname = 'public'")).isEqualTo(before);
  }

  @Test
  void refusesAUrlThatIsNoneOfPostgreSql() {
    assertThatThrownBy(
            () -> ExampleDatabase.open("outbox_example", "jdbc:other:shop", "ann", null, null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("jdbc:other:shop");
  }
}
