package dev.outbox4j.postgres.internal.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class InsertionOrderTest {
  private static OutboxMessage message(String queue, String orderingKey, String timerId) {
    OutboxMessage.Builder message = OutboxMessage.to(queue);
    if (orderingKey != null) {
      message.orderingKey(orderingKey);
    }
    return (timerId == null ? message : message.timerId(timerId)).build();
  }

  private static int[] order(OutboxMessage... messages) {
    return InsertionOrder.of(List.of(messages));
  }

  @Test
  void isThatOfTheCallIfTimerIdsAscend() {
    assertThat(
            order(
                message("q", null, null),
                message("q", "k", "b"),
                message("q", "k", null),
                message("q", null, "c"),
                message("r", null, "a"),
                message("a", null, null)))
        .containsExactly(0, 1, 2, 3, 4, 5);
  }

  @Test
  void keepsTheFirstOfTheSameTimerIdFirst() {
    assertThat(order(message("q", "k", "b"), message("q", null, "a"), message("q", "k", "b")))
        .containsExactly(1, 0, 2);
  }

  @Test
  void putsAfterTimersOnlyWhatFollowsOneOfItsKey() {
    assertThat(
            order(
                message("q", "k", "b"),
                message("q", "k", null),
                message("q", null, null),
                message("r", "k", null),
                message("q", null, "a")))
        .containsExactly(2, 3, 4, 0, 1);
  }

  @Test
  void isRefusedToTimersOfOneKeyWhateverTheOrderOfTheirIds() {
    for (List<String> ids : List.of(List.of("a", "b"), List.of("b", "a"))) {
      assertThatThrownBy(() -> order(message("q", "k", ids.get(0)), message("q", "k", ids.get(1))))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("the same ordering key and different timer ids");
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void keepsTimersSortedAndEachKeyInOrderWhateverTheCall(long seed) {
    Random random = new Random(seed);
    for (int run = 0; run < 2_000; run++) {
      List<OutboxMessage> messages = randomMessages(random);
      List<OutboxMessage> inserted =
          IntStream.of(InsertionOrder.of(messages)).mapToObj(messages::get).toList();
      assertThat(inserted).containsExactlyInAnyOrderElementsOf(messages);
      assertThat(inserted.stream().map(TimerKey::of).filter(Objects::nonNull).toList()).isSorted();
      for (String queue : List.of("q", "r")) {
        for (String key : List.of("k", "l", "m")) {
          assertThat(ofKey(inserted, queue, key)).isEqualTo(ofKey(messages, queue, key));
        }
        assertThat(withoutBoth(inserted, queue)).isEqualTo(withoutBoth(messages, queue));
      }
    }
  }

  private static List<OutboxMessage> ofKey(List<OutboxMessage> messages, String queue, String key) {
    return messages.stream()
        .filter(m -> m.queue().equals(queue) && m.orderingKey().filter(key::equals).isPresent())
        .toList();
  }

  private static List<OutboxMessage> withoutBoth(List<OutboxMessage> messages, String queue) {
    return messages.stream()
        .filter(m -> m.queue().equals(queue) && m.orderingKey().isEmpty() && m.timerId().isEmpty())
        .toList();
  }

  /** Up to a dozen messages, with one timer id at most for each queue and ordering key. */
  private static List<OutboxMessage> randomMessages(Random random) {
    Set<String> keysOfTimers = new HashSet<>();
    List<OutboxMessage> messages = new ArrayList<>();
    for (int i = random.nextInt(12); i >= 0; i--) {
      String queue = random.nextBoolean() ? "q" : "r";
      String key = List.of("k", "l", "m", "").get(random.nextInt(4));
      boolean timer = random.nextBoolean() && (key.isEmpty() || keysOfTimers.add(queue + key));
      messages.add(
          message(queue, key.isEmpty() ? null : key, timer ? "t" + random.nextInt(100) : null));
    }
    return messages;
  }
}
