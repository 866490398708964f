package dev.outbox4j.examples.jobs;

import java.util.Objects;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * The job: analyse the taste of a user by what the user likes.
 *
 * @param user whose taste
 * @param contentHash the hash of what the user liked when the job was enqueued
 */
public record TasteAnalysis(String user, String contentHash) {
  private static final Pattern USER = Pattern.compile("[\\w.-]{1,100}");
  private static final Pattern HASH = Pattern.compile("[0-9a-f]{64}");

  /** Checks that there is something. */
  public TasteAnalysis {
    Objects.requireNonNull(user, "user");
    Objects.requireNonNull(contentHash, "contentHash");
  }

  /** {@return what tells this job from others} */
  String key() {
    return user + ":" + contentHash;
  }

  /** {@return what is wrong with it, if anything is} */
  Optional<String> fault() {
    if (!USER.matcher(user).matches()) {
      return Optional.of("the user has no such name");
    }
    return HASH.matcher(contentHash).matches()
        ? Optional.empty()
        : Optional.of("the content hash is no SHA-256 in hex");
  }
}
