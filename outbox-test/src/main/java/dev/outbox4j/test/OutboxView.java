package dev.outbox4j.test;

import dev.outbox4j.spi.PayloadCodec;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What assertions look at. */
interface OutboxView {

  /** Names the outbox, at the beginning of a sentence. */
  String name();

  /** What counts as published. */
  List<OutboxRow> published(@Nullable PayloadCodec codec);

  /** What is in a queue now: due, held, delayed, or to be retried. */
  List<OutboxRow> waiting(String queue, @Nullable PayloadCodec codec);

  /** What is due, held or not. */
  List<OutboxRow> due(String queue, @Nullable PayloadCodec codec);

  /** What of a queue failed for good. */
  List<DeadLetter> deadLettered(String queue, @Nullable PayloadCodec codec);
}
