package dev.outbox4j.examples.jobs;

import java.io.IOException;

/** Ends its process at one item, as a library of native code does that crashes. */
final class CrashingAnalyst implements Analyst {
  /** The item. */
  static final String DEADLY = "a cursed ring";

  private static final int STATUS = 137;

  private final Analyst analyst;

  CrashingAnalyst(Analyst analyst) {
    this.analyst = analyst;
  }

  @Override
  public String taste(LikedItems liked) throws IOException, InterruptedException, RefusedItems {
    String taste = analyst.taste(liked);
    if (liked.items().contains(DEADLY)) {
      Runtime.getRuntime().halt(STATUS); // no handler ends, nothing is closed
    }
    return taste;
  }
}
