package dev.outbox4j.test;

import dev.outbox4j.spi.PayloadCodec;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** An outbox whose terminal failures are deleted: who asks for its dead letters is refused. */
record WithoutDeadLetters(OutboxView view) implements OutboxView {
  @Override
  public String name() {
    return view.name();
  }

  @Override
  public List<OutboxRow> published(@Nullable PayloadCodec codec) {
    return view.published(codec);
  }

  @Override
  public List<OutboxRow> waiting(String queue, @Nullable PayloadCodec codec) {
    return view.waiting(queue, codec);
  }

  @Override
  public List<OutboxRow> due(String queue, @Nullable PayloadCodec codec) {
    return view.due(queue, codec);
  }

  @Override
  public List<DeadLetter> deadLettered(String queue, @Nullable PayloadCodec codec) {
    throw new IllegalStateException(
        view.name()
            + " has no dead letters to look at, since messages that fail for good are deleted here;"
            + " test what the handler does instead, or keep dead letters in tests");
  }
}
