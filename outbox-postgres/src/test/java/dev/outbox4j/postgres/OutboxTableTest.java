package dev.outbox4j.postgres;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OutboxTableTest {
  @Test
  void derivesItsNames() {
    OutboxTable table = OutboxTable.named("outbox");
    assertThat(table.channel()).isEqualTo("outbox_outbox");
    assertThat(table.claimIndex()).isEqualTo("outbox_claim_idx");
    assertThat(table.timerIndex()).isEqualTo("outbox_timer_uq");
    assertThat(table.sleepersTable()).isEqualTo("outbox_sleepers");
    assertThat(table.publishFunction()).isEqualTo("outbox_publish");
    assertThat(table.schema()).isEmpty();
    assertThat(table).hasToString("outbox");
    assertThat(table.inSchema("billing")).hasToString("billing.outbox");
  }

  @Test
  void quotesNamesExactlyAsGiven() {
    OutboxTable table = OutboxTable.named("Odd name-1").inSchema("Größe");
    assertThat(table.qualifiedName()).isEqualTo("\"Größe\".\"Odd name-1\"");
    assertThat(table.qualifiedSleepers()).isEqualTo("\"Größe\".\"Odd name-1_sleepers\"");
  }

  @Test
  void refusesANameOfMoreThan32Bytes() {
    String longest = "x".repeat(OutboxTable.MAX_TABLE_BYTES);
    assertThat(OutboxTable.named(longest).name()).isEqualTo(longest);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxTable.named(longest + "x"))
        .withMessage(
            "table name '%sx' is 33 bytes long and may have 32, since other names are derived from it; shorten it by 1 bytes",
            longest);
  }

  @Test
  void countsBytesAndNotCharacters() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxTable.named("ß".repeat(17)))
        .withMessageContaining("is 34 bytes long");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxTable.named("outbox").inSchema("ß".repeat(32)))
        .withMessageContaining("schema name")
        .withMessageContaining("is 64 bytes long and PostgreSQL keeps 63; shorten it");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"", " ", "1st", "a\"b", "a'b", "a;b", "a\0b", "a\nb", "a\\b", "$a", "${a}", "🐘"})
  void refusesOtherCharacters(String name) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxTable.named(name))
        .withMessageStartingWith("table name '")
        .withMessageContaining("is not allowed; use letters, digits, _, - and spaces")
        .withMessageNotContaining("\n")
        .withMessageNotContaining("\0");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxTable.named("outbox").inSchema(name))
        .withMessageStartingWith("schema name '");
  }

  @Test
  void saysHowToNameASchema() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> OutboxTable.named("billing.outbox"))
        .withMessageEndingWith("; name the schema with inSchema(...)");
  }

  @Test
  void refusesNull() {
    assertThatNullPointerException()
        .isThrownBy(() -> OutboxTable.named(null))
        .withMessage("table name");
    assertThatNullPointerException()
        .isThrownBy(() -> OutboxTable.named("outbox").inSchema(null))
        .withMessage("schema name");
  }

  @Test
  void isEqualByNames() {
    assertThat(OutboxTable.named("a").inSchema("s"))
        .isEqualTo(OutboxTable.named("a").inSchema("s"))
        .hasSameHashCodeAs(OutboxTable.named("a").inSchema("s"))
        .isNotEqualTo(OutboxTable.named("a"))
        .isNotEqualTo(OutboxTable.named("b").inSchema("s"));
  }
}
