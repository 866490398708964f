package dev.outbox4j.postgres.internal;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What to look at if the database cannot be reached. */
public final class Remedies {
  private Remedies() {}

  /** Endings of the names of what is migrated by itself, and by what. */
  private static final Map<String, String> MIGRATIONS =
      Map.ofEntries(
          Map.entry("_slots", "SlotMigrations"),
          Map.entry("_pauses", "PauseMigrations"),
          Map.entry("_timer", "TimerMigrations"),
          Map.entry("_timer_run", "TimerMigrations"),
          Map.entry("_lock", "LockMigrations"),
          Map.entry("_monitor", "MonitorMigrations"),
          Map.entry("_monitor_event", "MonitorMigrations"),
          Map.entry("_job", "JobMigrations"),
          Map.entry("_job_end", "JobMigrations"),
          Map.entry("_job_enqueue", "JobMigrations"),
          Map.entry("_poller", "PollerMigrations"),
          Map.entry("_poller_history", "PollerMigrations"),
          Map.entry("_poller_quarantine", "PollerMigrations"),
          Map.entry("_dedup", "DedupMigrations"),
          Map.entry("_dedup_take", "DedupMigrations"),
          Map.entry("_buckets", "OrderedMigrations"),
          Map.entry("_bucket_owners", "OrderedMigrations"),
          Map.entry("_id_seq", "DedupMigrations")); // publishers of keys take ids

  /** What has the starter of Spring Boot run them. */
  private static final Map<String, String> PROPERTIES =
      Map.of(
          "SlotMigrations", "outbox4j.queues.<queue>.concurrency-limit",
          "PauseMigrations", "outbox4j.pausable=true",
          "DedupMigrations", "outbox4j.dedup-keys=true",
          "OrderedMigrations", "outbox4j.ordered-queues",
          "OutboxMigrations", "outbox4j.migrate=true");

  /**
   * Returns which property of Spring Boot has migrations run.
   *
   * @param migrations the simple name of the class
   * @return the property in parentheses, with its value where it has but one; nothing if there is
   *     none
   */
  static String withSpringBoot(String migrations) {
    String property = PROPERTIES.get(migrations);
    return property == null ? "" : " (with Spring Boot: " + property + ")";
  }

  /**
   * Returns which class makes what is missing, or may not be used.
   *
   * @param outbox the name of the outbox
   * @param said the server's words, which quote the name of the object in any language
   * @return the simple name of the class
   */
  static String migrations(String outbox, @Nullable String said) {
    String words = said == null ? "" : said.replaceAll("[^\\p{L}\\p{N}_$]+", " ") + " ";
    return MIGRATIONS.entrySet().stream()
        .filter(each -> words.contains(" " + outbox + each.getKey() + " "))
        .map(Map.Entry::getValue)
        .findFirst()
        .orElse("OutboxMigrations");
  }

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
