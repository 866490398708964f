package dev.outbox4j.dlq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.PostgresStore;
import dev.outbox4j.spi.OutboxStore;
import java.lang.reflect.Proxy;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DeadLetterQueueTest {
  private static final DataSource UNTOUCHED = forbidden(DataSource.class);

  @Test
  void bindsWithoutTouchingTheDatabase() {
    assertThat(
            DeadLetterQueue.in("outbox_dlq")
                .bind(PostgresOutbox.on(UNTOUCHED, OutboxTable.named("outbox")).store()))
        .isNotNull();
  }

  @Test
  void tellsWhereTheWriterMovesRows() {
    OutboxTable outbox = OutboxTable.named("outbox");
    PostgresStore unqualified = PostgresOutbox.on(UNTOUCHED, outbox).store();
    PostgresStore qualified = PostgresOutbox.on(UNTOUCHED, outbox.inSchema("sales")).store();

    assertThat(DeadLetterQueue.in("letters").bind(unqualified).place()).isEqualTo("letters");
    assertThat(DeadLetterQueue.in("letters").bind(qualified).place()).isEqualTo("sales.letters");
    assertThat(DeadLetterQueue.in("archive", "letters").bind(qualified).place())
        .isEqualTo("archive.letters");
  }

  @Test
  void refusesAStoreThatIsNotOnPostgres() {
    OutboxStore foreign = forbidden(OutboxStore.class);

    assertThatThrownBy(() -> DeadLetterQueue.in("outbox_dlq").bind(foreign))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'outbox_dlq'")
        .hasMessageContaining("need a store on PostgreSQL")
        .hasMessageContaining("PostgresOutbox.on(...).store()");
  }

  @Test
  void refusesTheOutboxItself() {
    OutboxTable outbox = OutboxTable.named("outbox");

    for (DeadLetterQueue itself :
        new DeadLetterQueue[] {DeadLetterQueue.in("outbox"), DeadLetterQueue.in("a", "outbox")}) {
      assertThatThrownBy(
              () -> itself.bind(PostgresOutbox.on(UNTOUCHED, outbox.inSchema("a")).store()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("is the outbox itself");
    }
    assertThat(
            DeadLetterQueue.in("b", "outbox")
                .bind(PostgresOutbox.on(UNTOUCHED, outbox.inSchema("a")).store()))
        .isNotNull();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "1st", "a.b", "a\"b", "a;b", "a\u0000b", "a?b", "{outbox}"})
  void refusesNamesThatAreNoIdentifiers(String name) {
    assertThatThrownBy(() -> DeadLetterQueue.in(name))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("dead-letter table name");
    assertThatThrownBy(() -> DeadLetterQueue.in(name, "dlq"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("dead-letter schema name");
  }

  @Test
  void refusesANameOfMoreThan36Bytes() {
    assertThat(DeadLetterQueue.in("d".repeat(36)).table()).hasSize(36);

    assertThatThrownBy(() -> DeadLetterQueue.in("d".repeat(37)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("is 37 bytes long and may have 36")
        .hasMessageContaining("shorten it by 1 bytes");
    assertThatThrownBy(() -> DeadLetterQueue.in("ü".repeat(19)))
        .hasMessageContaining("38 bytes long");
  }

  @Test
  void isEqualByItsNames() {
    assertThat(DeadLetterQueue.in("a", "b"))
        .isEqualTo(DeadLetterQueue.in("a", "b"))
        .hasSameHashCodeAs(DeadLetterQueue.in("a", "b"))
        .isNotEqualTo(DeadLetterQueue.in("b"))
        .hasToString("a.b");
    assertThat(DeadLetterQueue.in("b")).hasToString("b");
    assertThat(DeadLetterQueue.in("b").schema()).isEmpty();
    assertThat(DeadLetterQueue.in("a", "b").schema()).hasValue("a");
  }

  private static <T> T forbidden(Class<T> type) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) -> {
              throw new AssertionError(method + " must not be called");
            }));
  }
}
