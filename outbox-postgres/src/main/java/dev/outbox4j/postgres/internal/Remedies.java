package dev.outbox4j.postgres.internal;

import org.jspecify.annotations.Nullable;

/** What to look at if the database cannot be reached. */
public final class Remedies {
  private Remedies() {}

  /**
   * Tells whether the server refused who wanted to connect.
   *
   * @param state the SQLSTATE, if there is one
   * @return true if the user, the password or the database name is at fault
   */
  public static boolean isRefusal(@Nullable String state) {
    return state != null && (state.startsWith("28") || state.equals("3D000"));
  }

  /**
   * Tells whether the server takes no more connections, of all or of this user.
   *
   * @param state the SQLSTATE, if there is one
   * @return true if others have them all
   */
  public static boolean isFull(@Nullable String state) {
    return "53300".equals(state);
  }

  /**
   * Returns what to look at if no connection could be had.
   *
   * @param state the SQLSTATE, if there is one
   * @return in the imperative
   */
  public static String ofNoConnection(@Nullable String state) {
    if (isFull(state)) {
      return "the server takes no more connections: look in pg_stat_activity at who has them, and"
          + " compare the sizes of all pools with max_connections";
    }
    return isRefusal(state)
        ? "check user, password and database name"
        : "check that the server runs, that its address is right, and that the pool has a free connection";
  }
}
