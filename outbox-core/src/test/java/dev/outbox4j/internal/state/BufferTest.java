package dev.outbox4j.internal.state;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.ClaimedRow;
import dev.outbox4j.spi.History;
import dev.outbox4j.spi.LeaseRef;
import dev.outbox4j.spi.StoredMessage;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class BufferTest {
  private static final int ROUNDS = 3_000;

  private static List<HeldRow> rows(long from, int count) {
    List<ClaimedRow> claimed = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      claimed.add(
          new ClaimedRow(
              new LeaseRef("orders", from + i, 0),
              new StoredMessage(
                  "t",
                  null,
                  null,
                  Payload.of(new byte[1]),
                  Map.of(),
                  Instant.EPOCH,
                  Instant.EPOCH,
                  null),
              new History(1, 0, Duration.ZERO, Duration.ZERO)));
    }
    ClaimedBatch batch = new ClaimedBatch("orders", claimed, 0, 1_000);
    List<HeldRow> rows = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      rows.add(batch.at(i));
    }
    return rows;
  }

  /** Whoever adds, puts back, takes and closes at once: no row is lost, and none is left to two. */
  @Test
  void eachRowIsTakenOnceOrLeftToOneOfThoseWhoFindTheBufferClosed() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(5);
    try {
      for (int round = 0; round < ROUNDS; round++) {
        Buffer buffer = new Buffer();
        Queue<HeldRow> gone = new ConcurrentLinkedQueue<>();
        CyclicBarrier begin = new CyclicBarrier(5);
        List<Callable<Void>> tasks =
            List.of(
                () -> add(buffer, rows(0, 40), begin, gone),
                () -> add(buffer, rows(1_000, 40), begin, gone),
                () -> takeAndPutBack(buffer, begin, gone),
                () -> takeAndPutBack(buffer, begin, gone),
                () -> {
                  begin.await();
                  for (int i = ThreadLocalRandom.current().nextInt(200); i > 0; i--) {
                    Thread.onSpinWait();
                  }
                  gone.addAll(buffer.close());
                  return null;
                });
        for (Future<Void> task : threads.invokeAll(tasks)) {
          task.get();
        }
        assertThat(gone).as("in round %d", round).hasSize(80).doesNotHaveDuplicates();
        assertThat(buffer.poll()).isNull();
        assertThat(buffer.size()).isZero();
      }
    } finally {
      threads.shutdownNow();
      assertThat(threads.awaitTermination(10, TimeUnit.SECONDS)).isTrue();
    }
  }

  private static Void add(
      Buffer buffer, List<HeldRow> rows, CyclicBarrier begin, Queue<HeldRow> gone)
      throws Exception {
    begin.await();
    for (int i = 0; i < rows.size(); i += 4) {
      gone.addAll(buffer.add(rows.subList(i, i + 4)));
    }
    return null;
  }

  private static Void takeAndPutBack(Buffer buffer, CyclicBarrier begin, Queue<HeldRow> gone)
      throws Exception {
    begin.await();
    for (int i = 0; i < 30; i++) {
      HeldRow first = buffer.poll();
      HeldRow second = buffer.poll();
      if (first != null) {
        gone.add(first);
      }
      if (second != null) {
        gone.addAll(buffer.putBack(List.of(second)));
      }
    }
    return null;
  }
}
