package dev.outbox4j.benchmarks.spi;

import java.nio.ByteBuffer;
import java.util.Random;

/** Random payloads, which do not compress, that begin with an eight-byte sequence number. */
public final class Payloads {
  private static final int POOL = 1 << 20;
  private static final byte[] RANDOM = new byte[2 * POOL];

  static {
    new Random(42).nextBytes(RANDOM);
  }

  private Payloads() {}

  /**
   * Returns a payload.
   *
   * @param sequence its number
   * @param bytes its size, 8 to 1,048,576
   * @return a new array
   */
  public static byte[] of(long sequence, int bytes) {
    byte[] payload = new byte[bytes];
    int from = (int) ((sequence * 7919L) & (POOL - 1));
    System.arraycopy(RANDOM, from, payload, 0, bytes);
    ByteBuffer.wrap(payload).putLong(sequence);
    return payload;
  }

  /**
   * Returns the number of a payload.
   *
   * @param payload a payload
   * @return its number
   */
  public static long sequence(byte[] payload) {
    return ByteBuffer.wrap(payload).getLong();
  }
}
