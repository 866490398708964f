package dev.outbox4j;

/**
 * Why a message was dead-lettered. The {@linkplain #code() codes} are stored in the dead-letter
 * table and used as metric tags; they are a public contract.
 */
public enum FailureReason {
  /** Claimed more often than {@code maxDeliveries} allows; the handler was not called. */
  MAX_DELIVERIES("max_deliveries"),
  /** The retry policy is exhausted, or it classified the exception as permanent. */
  RETRY_TERMINAL("retry_terminal"),
  /** The handler rejected the message, or failed in {@link AckMode#REJECT_ON_ERROR}. */
  REJECTED("rejected"),
  /** The payload could not be decoded; the handler was not called. */
  UNDECODABLE("undecodable"),
  /** Its {@link OutboxMessage#expiresAt() time} was over; the handler was not called. */
  EXPIRED("expired");

  private final String code;

  FailureReason(String code) {
    this.code = code;
  }

  /** {@return the stable text of this reason, as stored in the dead-letter table} */
  public String code() {
    return code;
  }

  /**
   * Returns the reason of a code.
   *
   * @param code as given by {@link #code()}
   * @return the reason
   * @throws IllegalArgumentException if no reason has that code
   */
  public static FailureReason ofCode(String code) {
    for (FailureReason reason : values()) {
      if (reason.code.equals(code)) {
        return reason;
      }
    }
    throw new IllegalArgumentException("No failure reason has the code '" + code + "'");
  }
}
