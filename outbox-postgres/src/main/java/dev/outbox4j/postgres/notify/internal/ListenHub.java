package dev.outbox4j.postgres.notify.internal;

import dev.outbox4j.spi.NotificationSource;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ThreadFactory;

/** The channels of one source object, each with one {@link ListenLoop}. Thread-safe. */
public final class ListenHub implements NotificationSource {
  private static final int MAX_CHANNEL_BYTES = 63;

  private final ListenDriver driver;
  private final Probe probe;
  private final ThreadFactory threads;
  private final Map<String, ListenLoop> loops = new HashMap<>(); // guarded by itself

  /** Keeps the driver; does no I/O. */
  public ListenHub(ListenDriver driver, Probe probe) {
    this(driver, probe, Thread::new);
  }

  ListenHub(ListenDriver driver, Probe probe, ThreadFactory threads) {
    this.driver = driver;
    this.probe = probe;
    this.threads = threads;
  }

  /** {@return the same driver with another probe; shares no connection with this one} */
  public ListenHub with(Probe other) {
    return new ListenHub(driver, other, threads);
  }

  @Override
  public Subscription listen(String channel, Listener listener) {
    requireChannel(channel);
    Objects.requireNonNull(listener, "listener");
    synchronized (loops) {
      ListenLoop running = loops.get(channel);
      ListenLoop loop = running == null ? new ListenLoop(channel, driver, probe, threads) : running;
      Registration registration = new Registration(this, loop, listener);
      loop.add(registration);
      if (running == null) {
        loop.start(); // first: if no thread is to be had, the channel stays free for the next try
        loops.put(channel, loop);
      }
      return registration;
    }
  }

  /** Removes a listener and, after the last one of a channel, ends the channel's connection. */
  void remove(Registration registration, ListenLoop loop, boolean mayWait) {
    synchronized (loops) {
      if (!loop.remove(registration)) {
        return;
      }
      loops.remove(loop.channel(), loop);
    }
    loop.stop(mayWait);
  }

  private static void requireChannel(String channel) {
    Objects.requireNonNull(channel, "channel");
    int bytes = channel.getBytes(StandardCharsets.UTF_8).length;
    if (channel.isBlank() || channel.indexOf('\0') >= 0 || bytes > MAX_CHANNEL_BYTES) {
      throw new IllegalArgumentException(
          "channel '"
              + channel.replaceAll("\\p{Cntrl}", "?")
              + "' has "
              + bytes
              + " bytes; it must have 1 to "
              + MAX_CHANNEL_BYTES
              + " bytes in UTF-8, not be blank, and hold no NUL character");
    }
  }
}
