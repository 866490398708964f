package dev.outbox4j.examples.chaos;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Shows that the harness finds what it is to find: it runs it against engines that were broken on
 * purpose, and with faults that are not done. Each of those runs must fail, and name what is wrong;
 * a run of the sound engine must pass. {@code docs/operations/fault-harness.md} has its options.
 */
public final class Gate {
  static final Path PATCHES = Path.of("examples/src/test/broken-engines");
  private static final String SOUND = "sound";
  private static final String SHAMS = "shams";
  private static final String ORDER = "order";

  /** What a machine with two processors has room for, beside all kinds of messages. */
  private static final String RATE = "500";

  /** Figures of the run of the sound engine that show what it did. */
  private static final List<String> KEPT =
      List.of(
          "messages",
          "kinds",
          "chains",
          "repeated_transactions",
          "miscounted",
          "slots_held_at_kills",
          "worst_slots_given_back_after_kill_s");

  private final Path directory;
  private final Path report;
  private final List<Map<String, Object>> results = new ArrayList<>();
  private boolean passed = true;

  private Gate(Path directory, Path report) {
    this.directory = directory;
    this.report = report;
  }

  /** An engine, the faults that bring its fault to light, and the breaches that must be named. */
  private record Engine(String name, String faults, int seconds, List<String> breaches) {
    Engine(String name, String faults, int seconds, String breach) {
      this(name, faults, seconds, List.of(breach));
    }
  }

  private static final List<Engine> ENGINES =
      List.of(
          new Engine("no-fence", "freeze-subscriber,black-hole-network", 60, "stale_acks"),
          new Engine("no-token", "freeze-subscriber,black-hole-network", 60, "stale_acks"),
          new Engine("never-renews", "calm", 40, "unexplained_duplicates"),
          new Engine(
              "forgets-acks-in-an-outage",
              "cut-network,cut-from-server,terminate-connections",
              60,
              List.of(
                  "duplicates_after_lease_of_brief_faults", "repeats_in_order_of_brief_faults")),
          new Engine("deaf", "calm", 60, "quiet_messages_late"),
          new Engine("never-sweeps", "calm", 40, "stuck_rows"),
          new Engine("releases-what-runs", "calm", 40, "unexplained_duplicates"),
          // whatever is done at the time
          new Engine("two-of-a-key-at-once", "freeze-subscriber", 40, "beside_one_of_their_key"),
          new Engine("lets-others-overtake", "calm", 40, "overtaken"),
          new Engine(
              "commits-without-ack",
              "freeze-subscriber,black-hole-network",
              60,
              "repeated_transactions"),
          new Engine("handles-the-expired", "calm", 40, "handled_after_expiry"),
          new Engine("acks-a-failed-batch", "calm", 40, "lost"),
          new Engine("ignores-the-pause", "calm", 40, "handled_while_paused"),
          new Engine("exceeds-the-limit", "calm", 40, "more_at_once_than_the_limit"),
          new Engine("forgets-the-drain", "rolling-restart", 20, "after a graceful stop"));

  /** Engines that the proof of order must refuse, and by which figure. */
  private static final Map<String, String> OUT_OF_ORDER =
      Map.of(
          "lets-others-overtake", "out_of_turn",
          "two-of-a-key-at-once", "beside_one_of_their_key",
          "acks-out-of-turn", "acks_out_of_turn");

  private static final Map<String, String> SMALL =
      Map.of("processes", "3", "keys", "100", "messages", "10000", "ends", "3");

  /** Arguments: the names of the runs that are wanted; all without any. */
  public static void main(String[] arguments) throws IOException, InterruptedException {
    Path directory = Files.createTempDirectory("outbox-gate");
    String report = System.getProperty("chaos.report", "").strip();
    Gate gate = new Gate(directory, Path.of(report.isEmpty() ? "docs/chaos-gate.json" : report));
    List<String> wanted =
        Arrays.stream(System.getProperty("chaos.gate", "").split(","))
            .map(String::strip)
            .filter(name -> !name.isEmpty() && !name.equals("true"))
            .toList();
    List<String> all = new ArrayList<>(List.of(SOUND, SHAMS, ORDER));
    ENGINES.forEach(engine -> all.add(engine.name()));
    if (!all.containsAll(wanted)) {
      throw new IllegalArgumentException(
          "-Dchaos.gate="
              + String.join(",", wanted)
              + " is not of "
              + all
              + "; name some, or none");
    }
    gate.run(wanted);
    System.exit(gate.passed ? 0 : 1);
  }

  private void run(List<String> wanted) throws IOException, InterruptedException {
    if (asked(wanted, SOUND)) {
      Verdict sound = harness(SOUND, List.of(), Map.of("seconds", "60"));
      require(SOUND, sound, List.of());
      keep(sound);
    }
    if (asked(wanted, SHAMS)) {
      shams();
    }
    if (asked(wanted, ORDER)) {
      order();
    }
    for (Engine engine : ENGINES) {
      if (asked(wanted, engine.name())) {
        Map<String, String> options =
            Map.of(
                "faults", engine.faults(),
                "seconds", Integer.toString(engine.seconds()));
        Verdict verdict = harness(engine.name(), List.of(broken(engine.name())), options);
        require(engine.name(), verdict, engine.breaches());
      }
    }
    if (wanted.isEmpty()) {
      write();
    }
    Report.say(passed ? "GATE PASSED" : "GATE FAILED");
  }

  /** The names of all broken engines. */
  static List<String> engines() {
    return Stream.concat(ENGINES.stream().map(Engine::name), OUT_OF_ORDER.keySet().stream())
        .distinct()
        .toList();
  }

  private static boolean asked(List<String> wanted, String name) {
    return wanted.isEmpty() || wanted.contains(name);
  }

  /**
   * Each fault is announced and not done, in a run of its own beside one that is done: what that
   * leaves behind must not pass for its signs.
   */
  private void shams() throws IOException, InterruptedException {
    List<String> expected = new ArrayList<>();
    List<String> found = new ArrayList<>();
    int status = 1;
    for (Fault fault : Fault.values()) {
      if (fault == Fault.CALM) {
        continue; // there is nothing to do for it
      }
      Fault real = fault == Fault.CUT_NETWORK ? Fault.TERMINATE_CONNECTIONS : Fault.CUT_NETWORK;
      Map<String, String> options =
          Map.of(
              "faults",
              real.label() + "," + fault.label(),
              "sham",
              fault.label(),
              "seconds",
              "1",
              "once",
              "true");
      String name = SHAMS + "-" + fault.label();
      String sham = "nothing shows that " + fault.label() + " happened";
      Verdict verdict = harness(name, List.of(), options);
      if (verdict.breaches().stream().anyMatch(breach -> !breach.contains(sham))) {
        passed = false;
        Report.say("%s: WRONG; there are other breaches: %s".formatted(name, verdict.breaches()));
      }
      status = Math.min(status, verdict.status());
      found.addAll(verdict.breaches());
      expected.add(sham);
    }
    require(SHAMS, new Verdict(status, found, Map.of()), expected);
  }

  /** The proof of order, at a small size, of the sound engine and of those without it. */
  private void order() throws IOException, InterruptedException {
    String sound = ORDER + "-" + SOUND;
    require(sound, harness(sound, OrderProof.class, List.of(), SMALL), List.of());
    for (Map.Entry<String, String> engine : new TreeMap<>(OUT_OF_ORDER).entrySet()) {
      String name = ORDER + "-" + engine.getKey();
      Verdict verdict = harness(name, OrderProof.class, List.of(broken(engine.getKey())), SMALL);
      require(name, verdict, List.of(engine.getValue()));
    }
  }

  /** How a run of the harness ended. */
  record Verdict(int status, List<String> breaches, Map<String, JsonNode> figures) {
    Optional<String> breach(String words) {
      return breaches.stream().filter(breach -> breach.contains(words)).findFirst();
    }
  }

  /** A run that must name breaches, or must have none. */
  private void require(String name, Verdict verdict, List<String> breaches) {
    List<String> missing =
        breaches.stream().filter(breach -> verdict.breach(breach).isEmpty()).toList();
    boolean failed = verdict.status() != 0;
    boolean asItShould = missing.isEmpty() && failed == !breaches.isEmpty();
    passed &= asItShould;
    results.add(result(name, verdict, breaches));
    Report.say(
        "%s: %s, %s"
            .formatted(
                name,
                failed ? "FAILED" : "PASSED",
                asItShould ? "as it should" : "WRONG; not named: " + missing));
  }

  /** What is kept of a run: the first of the breaches that it must name, and all if several. */
  static Map<String, Object> result(String name, Verdict verdict, List<String> breaches) {
    List<String> named =
        breaches.stream().flatMap(breach -> verdict.breach(breach).stream()).toList();
    Map<String, Object> result = new LinkedHashMap<>();
    result.put("name", name);
    result.put("verdict", verdict.status() != 0 ? "FAILED" : "PASSED");
    result.put("breach", named.isEmpty() ? "" : named.get(0));
    if (breaches.size() > 1) {
      result.put("breaches", named);
    }
    return result;
  }

  /** Keeps what the last result was of: a run that had none of it shows nothing. */
  private void keep(Verdict verdict) {
    results.get(results.size() - 1).putAll(verdict.figures());
    List<String> missing =
        KEPT.stream().filter(figure -> !verdict.figures().containsKey(figure)).toList();
    if (!missing.isEmpty()) {
      passed = false;
      Report.say("%s: WRONG; its report has no %s".formatted(SOUND, missing));
    }
  }

  /** Compiles what a patch changes, once, to be put before the engine's classes. */
  private Path broken(String engine) throws IOException, InterruptedException {
    Path classes = directory.resolve(engine).resolve("classes");
    if (Files.exists(classes)) {
      return classes;
    }
    Files.createDirectories(classes);
    Path sources = Files.createDirectories(directory.resolve(engine).resolve("sources"));
    Path patch = PATCHES.resolve(engine + ".patch").toAbsolutePath();
    List<String> changed =
        Files.readAllLines(patch).stream()
            .filter(line -> line.startsWith("+++ b/"))
            .map(line -> line.substring("+++ b/".length()))
            .toList();
    for (String file : changed) {
      Path copy = sources.resolve(file);
      Files.createDirectories(copy.getParent());
      Files.copy(Path.of(file), copy);
    }
    command(sources, List.of("git", "apply", patch.toString()));
    List<String> compile = new ArrayList<>();
    compile.add(Path.of(System.getProperty("java.home"), "bin", "javac").toString());
    compile.addAll(List.of("-proc:none", "-nowarn", "-cp", System.getProperty("java.class.path")));
    compile.addAll(List.of("-d", classes.toString()));
    changed.forEach(file -> compile.add(sources.resolve(file).toString()));
    command(sources, compile);
    return classes;
  }

  private void command(Path where, List<String> command) throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).directory(where.toFile()).inheritIO().start();
    if (process.waitFor() != 0) {
      throw new IOException(command.get(0) + " failed with " + process.exitValue());
    }
  }

  private Verdict harness(String name, List<Path> before, Map<String, String> options)
      throws IOException, InterruptedException {
    return harness(name, Chaos.class, before, options);
  }

  private Verdict harness(
      String name, Class<?> main, List<Path> before, Map<String, String> options)
      throws IOException, InterruptedException {
    Report.say("%n== %s".formatted(name));
    Path result = directory.resolve(name + ".json");
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    Map<String, String> all = new LinkedHashMap<>(given());
    all.putAll(options);
    all.put("report", result.toString());
    all.forEach((option, value) -> command.add("-Dchaos." + option + "=" + value));
    String path =
        Stream.concat(
                before.stream().map(Path::toString),
                Stream.of(System.getProperty("java.class.path")))
            .reduce((a, b) -> a + File.pathSeparator + b)
            .orElseThrow();
    command.addAll(List.of("-cp", path, main.getName()));
    int status = new ProcessBuilder(command).inheritIO().start().waitFor();
    List<String> breaches = new ArrayList<>();
    Map<String, JsonNode> figures = new LinkedHashMap<>();
    if (Files.exists(result)) {
      JsonNode written = new ObjectMapper().readTree(result.toFile());
      written.get("breaches").forEach(breach -> breaches.add(breach.asText()));
      KEPT.stream()
          .filter(written::has)
          .forEach(figure -> figures.put(figure, written.get(figure)));
    }
    return new Verdict(status, breaches, figures);
  }

  /** Options for all runs. */
  private static Map<String, String> given() {
    Map<String, String> given = new LinkedHashMap<>(Map.of("rate", RATE));
    for (String option : List.of("rate", "seed", "slack", "pooler", "clocks", "volume")) {
      String value = System.getProperty("chaos." + option, "").strip();
      if (!value.isEmpty()) {
        given.put(option, value);
      }
    }
    return given;
  }

  private void write() throws IOException {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("date", LocalDate.now(ZoneOffset.UTC).toString());
    all.put("commit", Commit.current());
    all.put("passed", passed);
    all.put("engines", results);
    new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValue(report.toFile(), all);
    Report.say("written to " + report);
  }
}
