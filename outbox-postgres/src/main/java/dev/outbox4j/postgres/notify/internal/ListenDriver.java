package dev.outbox4j.postgres.notify.internal;

import dev.outbox4j.postgres.internal.SqlFaults;
import java.time.Duration;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Opens connections of one database driver. Thread-safe. */
public interface ListenDriver {

  /** {@return the driver's name, for people} */
  String name();

  /**
   * Returns the SQLSTATE of what this driver threw.
   *
   * @param thrown by a connection or the opening of one
   * @return the state, or null if it has none
   */
  default @Nullable String sqlState(Throwable thrown) {
    return SqlFaults.state(
        thrown); // the driver's own may be a cause, as with a wrapped data source
  }

  /**
   * Connects; blocks until it is done. May be interrupted when nobody wants the connection any
   * more.
   *
   * @param onNotification takes the payload of each notification, on a thread of the driver or of
   *     {@link ListenConnection#await}; quick, throws nothing
   * @param limit how long one exchange with the server should take at most
   * @return the connection
   * @throws Exception if it failed; nothing is left open
   */
  ListenConnection open(Consumer<String> onNotification, Duration limit) throws Exception;
}
