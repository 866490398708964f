package dev.outbox4j.examples.jobs;

/** The analysis service does not take these items, however often it is asked. */
final class RefusedItems extends Exception {
  private static final long serialVersionUID = 1L;

  RefusedItems(String why) {
    super(why);
  }
}
