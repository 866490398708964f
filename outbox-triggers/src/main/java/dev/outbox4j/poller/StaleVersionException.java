package dev.outbox4j.poller;

/** A poller has another version than was expected: somebody has changed it meanwhile. */
public final class StaleVersionException extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  private final long version;

  /**
   * Creates it.
   *
   * @param poller the poller's name
   * @param expected the version that was expected
   * @param version the version that it has
   */
  public StaleVersionException(String poller, long expected, long version) {
    super(
        "poller '%s' has version %d and not %d; look at it again before you change it"
            .formatted(poller, version, expected));
    this.version = version;
  }

  /** {@return the version that the poller has} */
  public long version() {
    return version;
  }
}
