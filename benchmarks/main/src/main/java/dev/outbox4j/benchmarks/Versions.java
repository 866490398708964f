package dev.outbox4j.benchmarks;

import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The versions of peers, drivers and pools on the class path of a module's contestants. */
final class Versions {
  private static final Set<String> REPORTED =
      Set.of(
          "HikariCP",
          "postgresql",
          "r2dbc-postgresql",
          "pgjdbc-ng",
          "db-scheduler",
          "transactionoutbox-core",
          "jobrunr",
          "quartz",
          "namastack-outbox-starter-jdbc",
          "spring-boot",
          "spring-modulith-starter-jdbc",
          "transact");

  private static final Pattern JAR = Pattern.compile("(.+?)-(\\d.*)\\.jar");

  private Versions() {}

  static Map<String, String> of(String module) throws IOException {
    return ClassPath.exists(module) ? within(ClassPath.of(module)) : Map.of();
  }

  static Map<String, String> within(String classPath) {
    Map<String, String> versions = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    Arrays.stream(classPath.split(Pattern.quote(File.pathSeparator), -1))
        .map(jar -> JAR.matcher(jar.substring(jar.lastIndexOf(File.separatorChar) + 1)))
        .filter(Matcher::matches)
        .filter(jar -> REPORTED.contains(jar.group(1)))
        .forEach(jar -> versions.put(jar.group(1), jar.group(2)));
    return versions;
  }
}
