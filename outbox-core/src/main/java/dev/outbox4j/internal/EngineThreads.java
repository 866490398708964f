package dev.outbox4j.internal;

/**
 * Makes the threads of a subscriber. They inherit nothing from whoever happens to make them: none
 * is a daemon, and all have the class loader of where the subscriber was built. Immutable.
 */
final class EngineThreads {
  private final String prefix;
  private final ClassLoader loader;

  EngineThreads(String subscriber, ClassLoader loader) {
    this.prefix = "outbox-" + subscriber + "-";
    this.loader = loader;
  }

  /** Returns a thread that is not started, named after the subscriber and what it is for. */
  Thread newThread(Runnable task, String name) {
    Thread thread = new Thread(null, task, prefix + name, 0, false);
    thread.setDaemon(false);
    thread.setContextClassLoader(loader);
    return thread;
  }

  /** Returns a thread that keeps no process from ending. */
  Thread newDaemon(Runnable task, String name) {
    Thread thread = newThread(task, name);
    thread.setDaemon(true);
    return thread;
  }

  String prefix() {
    return prefix;
  }
}
