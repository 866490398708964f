package dev.outbox4j.benchmarks.spi;

import java.util.BitSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/** Counts messages of a range of sequence numbers, each once, and decides their outcome. */
final class CountingSink implements Sink {
  private static final double START_UP_SECONDS = 30;

  private final long first;
  private final long expected;
  private final boolean failing;
  private final boolean byAcks;
  private final LongConsumer onHandled;

  /** Handler runs of each message, four bits each. */
  private final AtomicIntegerArray runs;

  private final AtomicLong handled = new AtomicLong();
  private final AtomicLong ended = new AtomicLong();
  private final AtomicLong again = new AtomicLong();
  private final AtomicLong acks = new AtomicLong();
  private final CountDownLatch done = new CountDownLatch(1);
  private volatile long firstHandled;
  private volatile long lastEnd = System.nanoTime();

  CountingSink(long first, long expected, boolean failing, boolean byAcks, LongConsumer onHandled) {
    this.first = first;
    this.expected = expected;
    this.failing = failing;
    this.byAcks = byAcks;
    this.onHandled = onHandled;
    this.runs = new AtomicIntegerArray((int) (expected / 8 + 1));
  }

  @Override
  public Verdict handle(byte[] payload) {
    long sequence = Payloads.sequence(payload);
    long index = sequence - first;
    if (index < 0 || index >= expected) {
      return Verdict.ACK;
    }
    onHandled.accept(sequence);
    if (handled.getAndIncrement() == 0) {
      firstHandled = System.nanoTime();
    }
    int shift = (int) (index % 8) * 4;
    int before =
        runs.getAndUpdate(
            (int) (index / 8), word -> nibble(word, shift) == 15 ? word : word + (1 << shift));
    int earlier = nibble(before, shift);
    Verdict verdict = failing ? failing(index, earlier) : Verdict.ACK;
    if (verdict == Verdict.RETRY) {
      return verdict;
    }
    if (earlier == (failing && index % 10 == 1 ? 2 : 0)) {
      long endedNow = ended.incrementAndGet();
      if (!byAcks) {
        lastEnd = System.nanoTime();
        if (endedNow >= expected) {
          done.countDown();
        }
      }
    } else {
      again.incrementAndGet();
    }
    return verdict;
  }

  /** One in ten fails twice, one in a hundred for good. */
  private static Verdict failing(long index, int earlier) {
    if (index % 100 == 5) {
      return Verdict.REJECT;
    }
    return index % 10 == 1 && earlier < 2 ? Verdict.RETRY : Verdict.ACK;
  }

  private static int nibble(int word, int shift) {
    return (word >>> shift) & 15;
  }

  @Override
  public void acked(int messages) {
    lastEnd = System.nanoTime();
    if (acks.addAndGet(messages) >= expected && byAcks) {
      done.countDown();
    }
  }

  boolean await(double seconds) throws InterruptedException {
    return done.await((long) (seconds * 1000), TimeUnit.MILLISECONDS);
  }

  /**
   * Waits until all is done, or nothing has been done for a while: another process did the rest,
   * or, a longer while after the start, everything.
   */
  boolean awaitQuiet(double seconds, double quietSeconds) throws InterruptedException {
    long start = System.nanoTime();
    while (!await(0.05)) {
      long now = System.nanoTime();
      if ((now - start) / 1e9 >= seconds) {
        return false;
      }
      double quietFor = finished() > 0 ? quietSeconds : START_UP_SECONDS;
      if ((now - lastEnd) / 1e9 >= quietFor) {
        return true;
      }
    }
    return true;
  }

  /** When the first message came; start-up is over then. */
  long firstHandled() {
    return firstHandled;
  }

  long lastEnd() {
    return lastEnd;
  }

  /** Messages done so far. */
  long finished() {
    return byAcks ? Math.min(acks.get(), expected) : ended.get();
  }

  long handled() {
    return handled.get();
  }

  /** Which messages of the range have come, by their places in it. */
  BitSet seen() {
    BitSet seen = new BitSet((int) expected);
    for (int index = 0; index < expected; index++) {
      if (nibble(runs.get(index / 8), index % 8 * 4) > 0) {
        seen.set(index);
      }
    }
    return seen;
  }

  /** Handler runs after a message's last. */
  long repeated() {
    return again.get();
  }
}
