package dev.outbox4j.postgres;

/** The entry point: store, publishers and validator of an outbox table. */
public final class PostgresOutbox {
  private PostgresOutbox() {}

  /** Collects a publisher's settings. */
  public static final class PublisherBuilder {
    /**
     * Allows connections in autocommit mode.
     *
     * @return this builder
     */
    public PublisherBuilder allowAutoCommit() {
      return this;
    }
  }
}
