package dev.outbox4j.postgres.internal.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.outbox4j.IfLive;
import dev.outbox4j.OutboxException;
import dev.outbox4j.OutboxMessage;
import dev.outbox4j.Payload;
import dev.outbox4j.postgres.Published;
import dev.outbox4j.postgres.internal.publish.PublishBatch.Inserted;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class PublishBatchTest {
  private static OutboxMessage plain(String type) {
    return OutboxMessage.to("q").type(type).body(type).build();
  }

  private static OutboxMessage timer(String queue, String id) {
    return OutboxMessage.to(queue).timerId(id).build();
  }

  private static PublishBatch batch(OutboxMessage... messages) {
    return new PublishBatch(List.of(messages), new BodyEncoder(null));
  }

  private static Published row(long id) {
    return new Published(OptionalLong.of(id));
  }

  private static final Published NONE = new Published(OptionalLong.empty());

  @Test
  void keepsTheOrderOfMessagesWithoutTimerIds() {
    PublishBatch batch = batch(plain("b"), plain("a"), plain("c"));
    assertThat(batch.types).containsExactly("b", "a", "c");
    assertThat(batch.results(rows(3, 1, 2))).containsExactly(row(1), row(2), row(3));
  }

  @Test
  void ofOneTimerIdTheLastMessageIsInsertedThatTakesThePlaceOfALiveOne() {
    PublishBatch batch =
        batch(
            replacing("a", "1"),
            timer("q", "a"),
            plain("x"),
            replacing("a", "2"),
            timer("q", "a"),
            timer("q", "b"));
    assertThat(batch.types).containsExactly("x", "2", null);
    assertThat(batch.replacedQueues).containsExactly("q");
    assertThat(batch.replacedTimers).containsExactly("a");
    assertThat(batch.results(List.of(new Inserted(1, "q", null, 0), new Inserted(2, "q", "a", 0))))
        .containsExactly(NONE, NONE, row(1), row(2), NONE, NONE);
  }

  @Test
  void refusesDedupKeysBesideTimersThatTakeThePlaceOfLiveOnes() {
    OutboxMessage keyed = OutboxMessage.to("q").dedupKey("k", Duration.ofHours(1)).build();
    assertThatThrownBy(() -> batch(keyed, replacing("a", "1")))
        .isInstanceOf(OutboxException.class)
        .hasMessageContaining("publish these in a call each");
  }

  private static OutboxMessage replacing(String id, String type) {
    return OutboxMessage.to("q").type(type).timerId(id, IfLive.REPLACE).build();
  }

  @Test
  void givesEachTimerTheRowOfItsId() {
    PublishBatch batch =
        batch(plain("x"), timer("r", "a"), timer("q", "b"), plain("y"), timer("q", "a"));
    assertThat(batch.timerIds).containsExactly(null, null, "a", "b", "a");
    assertThat(batch.queues).containsExactly("q", "q", "q", "q", "r");
    assertThat(batch.types).containsExactly("x", "y", null, null, null);
    assertThat(
            batch.results(
                List.of(
                    new Inserted(5, "q", null, 0),
                    new Inserted(3, "r", "a", 0),
                    new Inserted(4, "q", null, 0),
                    new Inserted(1, "q", "a", 0))))
        .containsExactly(row(4), row(3), NONE, row(5), row(1));
  }

  @Test
  void givesTheRowToTheFirstOfTheSameTimerId() {
    assertThat(
            batch(timer("q", "a"), timer("q", "a"), timer("r", "a"))
                .results(List.of(new Inserted(7, "q", "a", 0), new Inserted(9, "r", "a", 0))))
        .containsExactly(row(7), NONE, row(9));
  }

  @Test
  void knowsWhatIsDueFirstInEachQueue() {
    Instant soon = Instant.parse("2030-01-01T00:00:00Z");
    PublishBatch.FirstDue due =
        batch(
                OutboxMessage.to("a").deliverIn(Duration.ofSeconds(2)).build(),
                OutboxMessage.to("b").deliverAt(soon.plusSeconds(1)).build(),
                OutboxMessage.to("a").deliverIn(Duration.ofSeconds(1)).build(),
                OutboxMessage.to("b").deliverAt(soon).build(),
                OutboxMessage.to("c").deliverIn(Duration.ofSeconds(3)).build(),
                OutboxMessage.to("c").build(),
                OutboxMessage.to("c").deliverAt(soon).build())
            .firstDue();
    assertThat(due.queues).containsExactly("a", "b", "c");
    assertThat(due.delays).containsExactly(1_000_000L, null, 0L);
    assertThat(due.deliverAts)
        .containsExactly(null, "2030-01-01 00:00:00.000000+00", "2030-01-01 00:00:00.000000+00");
  }

  @Test
  void cutsPayloadsByPlaceAndSize() {
    PublishBatch batch = batch(plain("ab"), OutboxMessage.to("q").build(), plain("cde"));
    assertThat(batch.payloads).isEqualTo("abcde".getBytes(java.nio.charset.StandardCharsets.UTF_8));
    assertThat(batch.firstBytes).containsExactly(1, 3, 3);
    assertThat(batch.sizes).containsExactly(2, 0, 3);
  }

  @Test
  void sendsEmptyArraysOfWhatNoMessageHas() {
    PublishBatch bare = batch(OutboxMessage.to("q").build(), OutboxMessage.to("q").build());
    assertThat(bare.queues).containsExactly("q", "q");
    assertThat(
            List.of(
                bare.types,
                bare.orderingKeys,
                bare.timerIds,
                bare.headers,
                bare.delays,
                bare.deliverAts))
        .allSatisfy(values -> assertThat(values).isEmpty());
    assertThat(batch(OutboxMessage.to("q").build(), plain("a")).types).containsExactly(null, "a");
  }

  @Test
  void refusesRowsThatDoNotMatch() {
    PublishBatch batch = batch(plain("a"), timer("q", "t"));
    for (List<Inserted> rows :
        List.of(
            List.<Inserted>of(),
            List.of(new Inserted(1, "q", "t", 0)),
            rows(1, 2),
            List.of(new Inserted(1, "q", null, 0), new Inserted(2, "other", "t", 0)))) {
      assertThatThrownBy(() -> batch.results(rows))
          .isInstanceOf(OutboxException.class)
          .hasMessageContaining("publishing 2 messages gave " + rows.size() + " rows")
          .hasMessageContaining("look for a trigger, rule or policy");
    }
  }

  @Test
  void refusesMorePayloadThanOneCallMayCarry() {
    OutboxMessage large =
        OutboxMessage.to("q")
            .body(Payload.wrap(new byte[(int) (PublishBatch.MAX_BYTES / 64)]))
            .build();
    OutboxMessage[] messages = new OutboxMessage[65];
    Arrays.fill(messages, large);
    assertThatThrownBy(() -> batch(messages))
        .isInstanceOf(OutboxException.class)
        .hasMessage(
            "the payloads of 65 messages have more than 268435456 bytes together, the most that one call may publish; publish fewer at a time");
  }

  private static List<Inserted> rows(long... ids) {
    return Arrays.stream(ids).mapToObj(id -> new Inserted(id, "q", null, 0)).toList();
  }
}
