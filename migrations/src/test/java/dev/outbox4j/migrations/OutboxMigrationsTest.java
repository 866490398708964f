package dev.outbox4j.migrations;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.outbox4j.OutboxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.stream.Stream;
import org.h2.jdbcx.JdbcDataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class OutboxMigrationsTest {

  @Test
  void printsTheWholeSqlWithoutPlaceholders() {
    String sql = OutboxMigrations.of("My Schema", "Jobs-1").deadLetters("dead", "letters").sql();

    assertThat(sql)
        .doesNotContain("${")
        .contains("create schema if not exists \"My Schema\";")
        .contains("create schema if not exists \"dead\";")
        .contains("create table \"My Schema\".\"Jobs-1\"")
        .contains("create table \"dead\".\"letters\"")
        .contains("'outbox_Jobs-1'")
        .endsWith(";\n");
  }

  @Test
  void printsThePartitionsOfDeadLetters() {
    OutboxMigrations plain =
        OutboxMigrations.of("My Schema", "Jobs-1").deadLetters("dead", "letters");
    OutboxMigrations partitioned = plain.partitionedDeadLetters(PartitionInterval.WEEK);

    assertThat(plain.sql()).doesNotContain("partition by");
    assertThat(partitioned.sql())
        .doesNotContain("${")
        .startsWith(plain.sql())
        .contains("'partitioned by week'")
        .contains(
            "(date_trunc('week', now() at time zone 'UTC') + interval '2 weeks') at time zone 'UTC'");
    assertThat(partitioned.deadLetters("dead", "others").deadLetters())
        .isEqualTo(DeadLetterMigrations.of("dead", "others").partitionedBy(PartitionInterval.WEEK));
    assertThat(partitioned.deadLetters().unpartitionSql())
        .doesNotContain("${")
        .contains("\"dead\".\"letters_plain\"");
    assertThatExceptionOfType(IllegalStateException.class)
        .isThrownBy(() -> plain.deadLetters().partitionSql())
        .withMessage(
            "There is no interval for partitions of 'letters'; give it by partitionedBy(...)");
  }

  @Test
  void doesNotCreateThePublicSchema() {
    assertThat(OutboxMigrations.standard().sql()).doesNotContain("create schema");
  }

  @Test
  void printsEveryMigrationThereIs() throws Exception {
    for (Scripts line :
        List.of(Scripts.OUTBOX, Scripts.DEAD_LETTERS, Scripts.INBOX, Scripts.ORDERED)) {
      Path folder = Path.of("src/main/resources/dev/outbox4j/migrations", line.folder());
      try (Stream<Path> files = Files.list(folder)) {
        assertThat(files.map(file -> file.getFileName().toString()))
            .containsExactlyInAnyOrderElementsOf(line.files());
      }
    }
    assertThat(OutboxMigrations.LATEST_VERSION).isEqualTo(Scripts.OUTBOX.latest());
    assertThat(DeadLetterMigrations.LATEST_VERSION).isEqualTo(Scripts.DEAD_LETTERS.latest());
    assertThat(InboxMigrations.LATEST_VERSION).isEqualTo(Scripts.INBOX.latest());
  }

  @Test
  void printsTheMigrationsOfOneLineByVersion() {
    OutboxMigrations migrations =
        OutboxMigrations.of("shop", "outbox").deadLetters("dead", "letters");

    assertThat(migrations.sql(0, 1))
        .contains("create table \"shop\".\"outbox\"")
        .doesNotContain("letters")
        .doesNotContain("create schema");
    assertThat(migrations.deadLetters().sql(0, 1))
        .contains("create table \"dead\".\"letters\"")
        .doesNotContain("create schema");
    assertThat(migrations.sql()).contains(migrations.sql(0, 1), migrations.deadLetters().sql(0, 1));
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "1, 1", "1, 0", "0, 2", "-1, 1"})
  void refusesVersionsThatThereAreNot(int from, int to) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.standard().sql(from, to))
        .withMessage(
            "There are no migrations from version %d to %d; there are versions 1 to 1, and 0 is before the first"
                .formatted(from, to));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> DeadLetterMigrations.of("public", "dlq").sql(from, to));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " outbox", "1outbox", "out.box", "out\"box", "out'box", "a;b", "$b"})
  void refusesNamesWithOtherCharacters(String name) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.of("public", name))
        .withMessageContaining("table name '" + name + "' is not allowed")
        .withMessageContaining("use letters, digits, _, - and spaces");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.of(name, "outbox"))
        .withMessageContaining("schema name");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.standard().deadLetters(name, "dlq"))
        .withMessageContaining("dead-letter schema name");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.standard().deadLetters("public", name))
        .withMessageContaining("dead-letter table name");
  }

  @Test
  void showsNoControlCharacterOfARefusedName() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.of("public", "out\u0000box"))
        .withMessageContaining("'out?box'");
  }

  @Test
  void refusesATableNameOfMoreThan32Bytes() {
    String longest = "o".repeat(32);
    assertThat(OutboxMigrations.of("public", longest).sql()).contains(longest);

    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.of("public", longest + "o"))
        .withMessage(
            "table name '%so' is 33 bytes long and may have 32, since other names are derived from it; shorten it by 1 bytes"
                .formatted(longest));
  }

  @Test
  void countsBytesAndNotCharacters() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.of("public", "ö".repeat(17)))
        .withMessageContaining("is 34 bytes long");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.of("ö".repeat(32), "outbox"))
        .withMessageContaining("is 64 bytes long");
  }

  @Test
  void refusesADeadLetterTableNameOfMoreThan36Bytes() {
    assertThat(OutboxMigrations.standard().deadLetters("public", "d".repeat(36)).sql())
        .contains("d".repeat(36) + "_queue_failed_idx");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.standard().deadLetters("public", "d".repeat(37)))
        .withMessageContaining("is 37 bytes long and may have 36");
  }

  @ParameterizedTest
  @ValueSource(strings = {"outbox", "outbox_sleepers", "outbox_claim_idx", "outbox_id_seq"})
  void refusesADeadLetterTableThatClashesWithTheOutbox(String name) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.standard().deadLetters("public", name))
        .withMessageContaining("clashes with the outbox 'outbox' in the same schema");
    assertThat(OutboxMigrations.standard().deadLetters("dead", name).sql()).contains(name);
  }

  @Test
  void quotesRolesInGrants() {
    assertThat(OutboxMigrations.standard().grantsSql("pub\"lisher", "sub scriber", "Ops"))
        .contains("to \"pub\"\"lisher\";")
        .contains("to \"sub scriber\";")
        .contains("to \"Ops\";");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "a\nb", "a\u0000"})
  void refusesRoleNamesThatNoRoleHas(String role) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.standard().grantsSql(role, "s", "o"))
        .withMessageContaining("publisher role");
  }

  @Test
  void refusesAnotherDatabaseBeforeItIsToldAnything() throws SQLException {
    JdbcDataSource other = new JdbcDataSource();
    other.setURL("jdbc:h2:mem:refused;DB_CLOSE_DELAY=-1");

    assertThatExceptionOfType(OutboxException.class)
        .isThrownBy(() -> OutboxMigrations.standard().migrate(other))
        .withMessage(
            "The outbox needs PostgreSQL, and the data source connects to H2; give it one that"
                + " connects to PostgreSQL, also in tests");
    try (Connection connection = other.getConnection();
        ResultSet tables = connection.getMetaData().getTables(null, "PUBLIC", "%", null)) {
      assertThat(tables.next()).as("a table").isFalse();
    }
  }
}
