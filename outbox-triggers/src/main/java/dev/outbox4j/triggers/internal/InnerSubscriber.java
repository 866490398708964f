package dev.outbox4j.triggers.internal;

import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.dlq.DeadLetterQueue;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.spi.NotificationSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * What the user says of the subscriber that a trigger has inside. Collected by the trigger's
 * builder; not thread-safe.
 */
public final class InnerSubscriber {
  private final List<Consumer<OutboxSubscriber.Builder>> changes = new ArrayList<>();
  private @Nullable NotificationSource source;
  private DeadLetterQueue deadLetters;

  /**
   * Begins with the defaults: no source, and dead letters in {@code <outbox>_dlq} beside the
   * outbox.
   *
   * @param outbox where the messages are
   */
  public InnerSubscriber(PostgresOutbox outbox) {
    String table = outbox.table().name() + "_dlq";
    this.deadLetters =
        outbox
            .table()
            .schema()
            .map(schema -> DeadLetterQueue.in(schema, table))
            .orElseGet(() -> DeadLetterQueue.in(table));
  }

  /** Sets what wakes it. */
  public void listen(NotificationSource source) {
    this.source = Objects.requireNonNull(source, "source");
  }

  /** Sets where messages go that fail for good. */
  public void deadLetters(DeadLetterQueue deadLetters) {
    this.deadLetters = Objects.requireNonNull(deadLetters, "deadLetters");
  }

  /** Adds further settings. */
  public void change(Consumer<OutboxSubscriber.Builder> change) {
    changes.add(Objects.requireNonNull(change, "change"));
  }

  /** {@return what wakes it, or null} */
  public @Nullable NotificationSource source() {
    return source;
  }

  /** {@return where messages go that fail for good} */
  public DeadLetterQueue deadLetters() {
    return deadLetters;
  }

  /** Applies the source and the further settings. What is set after that overwrites them. */
  public void applyTo(OutboxSubscriber.Builder builder) {
    if (source != null) {
      builder.listen(source);
    }
    changes.forEach(change -> change.accept(builder));
  }
}
