package dev.outbox4j.lock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import java.time.Instant;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/** What cannot be is refused before anything is asked of a server; there is none here. */
class LocksBuilderTest {
  private static final PostgresOutbox OUTBOX =
      PostgresOutbox.on(new PGSimpleDataSource(), OutboxTable.named("outbox"));

  private final Locks locks = Locks.builder(OUTBOX, "shop").build();

  @ParameterizedTest
  @ValueSource(strings = {"", " ", " a", "a ", "\u2003a"})
  void aTextWithBlanksAtAnEndIsRefused(String text) {
    String rule = " '" + text + "' is blank, or has blanks at an end; name what is locked";

    assertRefused(() -> locks.lock(text), "lock name" + rule);
    assertRefused(() -> locks.listener(text, lock -> () -> {}), "lock name" + rule);
    assertRefused(() -> locks.lock("one").suffix(text), "suffix" + rule);
  }

  /** As it is told: in one line. */
  @ParameterizedTest
  @CsvSource({"'a\nb', a?b", "'a\u0001b', a?b", "'a\u007f', a?"})
  void aTextWithControlCharactersIsRefused(String text, String told) {
    String rule = " '" + told + "' has control characters; name what is locked";

    assertRefused(() -> locks.lock(text), "lock name" + rule);
    assertRefused(() -> locks.lock("one").suffix(text), "suffix" + rule);
  }

  @Test
  void aSlashIsForSuffixes() {
    assertRefused(
        () -> locks.lock("a/b"),
        "lock name 'a/b' has a '/', which is before suffixes; use suffix(...)");
    assertThat(locks.lock("a").suffix("b/c").name()).isEqualTo("a/b/c");
  }

  @Test
  void aNameMayHave200BytesAndASuffix500() {
    String name = "ä".repeat(100);
    String suffix = "ä".repeat(250);

    assertThat(locks.lock(name).suffix(suffix).name()).isEqualTo(name + "/" + suffix);
    assertRefused(
        () -> locks.lock(name + "x"),
        "lock name '" + name + "x' has 201 bytes; it may have 200, so shorten it");
    assertRefused(
        () -> locks.lock("one").suffix(suffix + "x"),
        "suffix '" + suffix + "x' has 501 bytes; it may have 500, so shorten it");
  }

  @ParameterizedTest
  @ValueSource(ints = {Integer.MIN_VALUE, -1, 0, 100_001, Integer.MAX_VALUE})
  void aNumberOutOfRangeIsNotPurged(int most) {
    LockControl control = LockControl.of(OUTBOX, "shop");

    assertRefused(
        () -> control.purge(Instant.EPOCH, most), "most is " + most + "; it must be 1 to 100,000");
  }

  static Stream<Arguments> applicationsThatAreRefused() {
    return Stream.of(
        Arguments.of("", "cannot be a part of a queue's name: queue is blank; give it a name"),
        Arguments.of("a\u0000", "has a NUL character at position 1"),
        Arguments.of("x".repeat(201), "has 201 bytes; it may have 200, so shorten it"));
  }

  @ParameterizedTest(name = "{1}")
  @MethodSource("applicationsThatAreRefused")
  void anApplicationThatNoQueueCanBeNamedAfterIsRefused(String application, String rule) {
    String value = "application '" + application + "'";

    assertThatThrownBy(() -> Locks.builder(OUTBOX, application))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(value)
        .hasMessageContaining(rule);
    assertThatThrownBy(() -> LockControl.of(OUTBOX, application))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(value)
        .hasMessageContaining(rule);
  }

  private static void assertRefused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }
}
