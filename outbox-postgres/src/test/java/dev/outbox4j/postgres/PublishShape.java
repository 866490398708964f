package dev.outbox4j.postgres;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.postgres.testing.TestDatabase;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;

/** The three publish statements; which of them runs depends on what a call holds. */
enum PublishShape {
  /** One message a call, without a timer id. */
  SINGLE {
    @Override
    List<Published> publish(
        Collection<OutboxMessage> messages,
        Function<Collection<OutboxMessage>, List<Published>> call) {
      return messages.stream().flatMap(one -> call.apply(List.of(one)).stream()).toList();
    }
  },

  /** Many messages a call, of which none has a timer id. */
  PLAIN,

  /** Many messages a call, of which some have timer ids. */
  TIMERS;

  /** Publishes by calls of this shape; messages must have timer ids only for {@link #TIMERS}. */
  List<Published> publish(
      Collection<OutboxMessage> messages,
      Function<Collection<OutboxMessage>, List<Published>> call) {
    return call.apply(messages);
  }

  List<Published> publish(
      PublishApi api,
      TestDatabase database,
      PostgresOutbox.PublisherBuilder builder,
      Collection<OutboxMessage> messages) {
    return publish(messages, some -> api.publish(database, builder, some));
  }

  /** Gives a message its timer id, if this is the shape for that. */
  OutboxMessage.Builder timer(OutboxMessage.Builder message, String timerId) {
    return this == TIMERS ? message.timerId(timerId) : message;
  }

  /** Each API with each statement. */
  static Stream<Arguments> ways() {
    return Stream.of(PublishApi.values())
        .flatMap(api -> Stream.of(values()).map(shape -> Arguments.of(api, shape)));
  }
}
