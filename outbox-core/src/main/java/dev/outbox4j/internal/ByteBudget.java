package dev.outbox4j.internal;

/** How many payload bytes a subscriber may hold. */
public final class ByteBudget {
  private static final long MOST = 32L << 20;

  /** One part of the heap in so many. */
  private static final int HEAP_SHARE = 16;

  private ByteBudget() {}

  /** Returns the bytes for claimed rows: 32 MiB, or a sixteenth of a small heap. */
  public static long claimed() {
    return Math.min(MOST, Math.max(1, Runtime.getRuntime().maxMemory() / HEAP_SHARE));
  }

  /** Returns the bytes for rows that cannot be written and wait, beside the former. */
  public static long held() {
    return claimed() / 4;
  }
}
