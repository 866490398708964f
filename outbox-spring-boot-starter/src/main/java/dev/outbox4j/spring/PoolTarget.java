package dev.outbox4j.spring;

import java.util.Properties;
import org.jspecify.annotations.Nullable;

/** Where a pool connects now, and as whom. */
record PoolTarget(
    @Nullable String url,
    @Nullable String username,
    @Nullable String password,
    Properties properties) {

  /** Leaves the password out, and the URL, which may hold one, too. */
  @Override
  public String toString() {
    return "PoolTarget[username=" + username + "]";
  }
}
