package dev.outbox4j.migrations;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
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
  void doesNotCreateThePublicSchema() {
    assertThat(OutboxMigrations.standard().sql()).doesNotContain("create schema");
  }

  @Test
  void printsEveryMigrationThereIs() throws Exception {
    Path folder = Path.of("src/main/resources/dev/outbox4j/migrations");
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.map(file -> file.getFileName().toString()))
          .containsExactlyInAnyOrderElementsOf(Scripts.FILES);
    }
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
  void namesTheLongestDerivedNameAndItsLength() {
    String longest = "o".repeat(42);
    assertThat(OutboxMigrations.of("public", longest).sql()).contains(longest);

    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.of("public", longest + "o"))
        .withMessage(
            "table name '%so' is too long: '%so_schema_history_s_idx', derived from it, is 64 bytes long and PostgreSQL keeps 63; shorten it by 1 bytes"
                .formatted(longest, longest));
  }

  @Test
  void countsBytesAndNotCharacters() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.of("public", "ö".repeat(22)))
        .withMessageContaining("is 65 bytes long");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.of("ö".repeat(32), "outbox"))
        .withMessageContaining("it is 64 bytes long");
  }

  @Test
  void namesTheLongestNameDerivedFromTheDeadLetterTable() {
    assertThat(OutboxMigrations.standard().deadLetters("public", "d".repeat(46)).sql())
        .contains("d".repeat(46) + "_queue_failed_idx");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxMigrations.standard().deadLetters("public", "d".repeat(47)))
        .withMessageContaining("d_queue_failed_idx', derived from it, is 64 bytes long");
  }

  @ParameterizedTest
  @ValueSource(strings = {"outbox", "outbox_sleepers", "outbox_claim_idx", "outbox_schema_history"})
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
}
