package dev.outbox4j.internal;

/**
 * Makes the threads of a subscriber. They inherit nothing from whoever happens to make them: none
 * is a daemon, and all have the class loader of where the subscriber was built. Immutable.
 */
public final class EngineThreads {
  private final String prefix;
  private final ClassLoader loader;

  public EngineThreads(String subscriber, ClassLoader loader) {
    this.prefix = "outbox-" + subscriber + "-";
    this.loader = loader;
  }

  /** Returns a thread that is not started, named after the subscriber and what it is for. */
  public Thread newThread(Runnable task, String name) {
    Thread thread = new Thread(null, task, prefix + name, 0, false);
    thread.setDaemon(false);
    thread.setContextClassLoader(loader);
    return thread;
  }

  /** Returns a thread that keeps no process from ending. */
  public Thread newDaemon(Runnable task, String name) {
    Thread thread = newThread(task, name);
    thread.setDaemon(true);
    return thread;
  }

  public String prefix() {
    return prefix;
  }
}
