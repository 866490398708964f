package dev.outbox4j.examples.jobs;

import java.io.IOException;

/** Tells a taste from what is liked. Thread-safe. */
interface Analyst {

  /**
   * Analyses.
   *
   * @param liked what is liked
   * @return the taste
   * @throws RefusedItems if it never will
   * @throws IOException if it cannot now
   */
  String taste(LikedItems liked) throws IOException, InterruptedException, RefusedItems;
}
