package dev.outbox4j.spring;

import java.util.Collection;
import java.util.Comparator;
import java.util.Locale;
import java.util.Optional;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;

/** Finds what somebody may have meant who wrote a name that is not known. */
final class NearName {
  /** More slips than these are another word. */
  private static final int MOST_SLIPS = 3;

  private NearName() {}

  /** Returns the known name with the fewest slips, else one of the same end in another group. */
  static Optional<ConfigurationPropertyName> of(
      ConfigurationPropertyName name, Collection<ConfigurationPropertyName> known) {
    String written = plain(name);
    Comparator<ConfigurationPropertyName> bySlips =
        Comparator.comparingInt(other -> slips(written, plain(other)));
    int most = Math.min(MOST_SLIPS, (1 + plain(name.subName(1)).length()) / 3);
    return known.stream()
        .min(bySlips.thenComparing(Comparator.naturalOrder()))
        .filter(other -> slips(written, plain(other)) <= most)
        .or(() -> ofSameEnd(name, known));
  }

  private static Optional<ConfigurationPropertyName> ofSameEnd(
      ConfigurationPropertyName name, Collection<ConfigurationPropertyName> known) {
    String end = "." + plain(name.subName(1));
    return known.stream()
        .filter(other -> plain(other).endsWith(end))
        .min(Comparator.naturalOrder());
  }

  private static String plain(ConfigurationPropertyName name) {
    return name.toString().replaceAll("[-_]", "").toLowerCase(Locale.ROOT);
  }

  /** How many letters have to be put in, taken out or changed. */
  private static int slips(String one, String other) {
    int[] row = new int[other.length() + 1];
    for (int column = 0; column < row.length; column++) {
      row[column] = column;
    }
    for (int line = 1; line <= one.length(); line++) {
      int diagonal = row[0];
      row[0] = line;
      for (int column = 1; column < row.length; column++) {
        int changed = diagonal + (one.charAt(line - 1) == other.charAt(column - 1) ? 0 : 1);
        diagonal = row[column];
        row[column] = Math.min(changed, 1 + Math.min(row[column], row[column - 1]));
      }
    }
    return row[other.length()];
  }
}
