package dev.outbox4j.benchmarks.spi;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/**
 * The process of one contestant. Each line on its standard input is a task; each task is answered
 * by one line on its standard output that begins with {@link #ANSWER} or {@link #FAILED}.
 */
public final class ContestantProcess {
  /** Begins the answer to a task that was done; numbers follow. */
  public static final String ANSWER = "@ok ";

  /** Begins the line before the first answer; the contestant's contract follows. */
  public static final String CONTRACT = "@contract ";

  /** Begins the answer to a task that failed; a text follows. */
  public static final String FAILED = "@failed ";

  private final Contestant contestant;
  private final Bench bench;
  private final LongAdder consumed = new LongAdder();
  private final LongAdder marked = new LongAdder();
  private final List<Consuming> consumers = new ArrayList<>();
  private @Nullable CountingSink drained;
  private @Nullable TimerTask timers;
  private volatile @Nullable Throwable uncaught;

  private ContestantProcess(Contestant contestant, Bench bench) {
    this.contestant = contestant;
    this.bench = bench;
  }

  /**
   * Runs a contestant.
   *
   * @param args its name, JDBC address, user, password, then settings as {@code name=value}
   * @throws IOException if the standard input breaks
   */
  public static void main(String[] args) throws IOException {
    PrintStream answers = System.out;
    // banners of libraries belong to the log
    System.setOut(System.err);
    Map<String, String> options = new HashMap<>();
    for (int i = 4; i < args.length; i++) {
      int equals = args[i].indexOf('=');
      options.put(args[i].substring(0, equals), args[i].substring(equals + 1));
    }
    Bench bench = new Bench(args[1], args[2], args[3], options);
    Contestant contestant = byName(args[0]);
    ContestantProcess process = new ContestantProcess(contestant, bench);
    Thread.setDefaultUncaughtExceptionHandler((thread, e) -> process.died(thread, e));
    answers.println(CONTRACT + contestant.contract());
    answers.println(ANSWER + "ready=1");
    try (BufferedReader tasks =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      String task = tasks.readLine();
      while (task != null && !task.equals("quit")) {
        answers.println(process.answer(task));
        task = tasks.readLine();
      }
    }
    // libraries may leave threads behind
    System.exit(0);
  }

  private static Contestant byName(String name) {
    for (Contestant contestant : ServiceLoader.load(Contestant.class)) {
      if (contestant.name().equals(name)) {
        return contestant;
      }
    }
    throw new IllegalArgumentException("no contestant is called " + name);
  }

  @SuppressWarnings("CatchAndPrintStackTrace") // a command's log
  private void died(Thread thread, Throwable e) {
    System.err.println("thread " + thread.getName() + " died");
    e.printStackTrace();
    uncaught = e;
  }

  // whatever a contestant throws is its result
  @SuppressWarnings("CatchAndPrintStackTrace")
  private String answer(String task) {
    try {
      Numbers numbers = perform(task.split(" ", -1));
      if (uncaught != null) { // one that lost a thread is slow, and that is no figure
        throw new IllegalStateException("a thread died", uncaught);
      }
      return ANSWER + numbers;
    } catch (Throwable e) {
      e.printStackTrace();
      return FAILED + String.valueOf(e).replace('\n', ' ');
    }
  }

  private Numbers perform(String[] task) throws Exception {
    return switch (task[0]) {
      case "prepare" -> {
        contestant.prepare(bench);
        yield new Numbers();
      }
      case "load" -> {
        able(Draining.class).load(bench, number(task[1]), number(task[2]), (int) number(task[3]));
        yield new Numbers();
      }
      case "drain" -> {
        Draining draining = able(Draining.class);
        CountingSink sink =
            new CountingSink(
                number(task[1]),
                number(task[2]),
                task[4].equals("failing"),
                draining.reportsAcks(),
                sequence -> {});
        drained = sink;
        yield DrainTask.run(
            draining, bench, sink, Double.parseDouble(task[3]), task[5].equals("shared"));
      }
      case "seen" -> {
        if (drained == null) {
          throw new IllegalStateException("nothing was drained");
        }
        Files.write(Path.of(task[1]), drained.seen().toByteArray());
        yield new Numbers();
      }
      case "left" -> {
        String query = able(Draining.class).countLeft();
        yield query.isEmpty() ? new Numbers() : new Numbers().with("rows_left", count(query));
      }
      case "fill" ->
          PublishTask.fill(
              able(Publishing.class),
              bench,
              number(task[1]),
              number(task[2]),
              (int) number(task[3]),
              (int) number(task[4]));
      case "publish" ->
          PublishTask.run(
              able(Publishing.class),
              bench,
              (int) number(task[1]),
              (int) number(task[2]),
              (int) number(task[3]),
              Double.parseDouble(task[4]),
              Double.parseDouble(task[5]),
              task[6].equals("business"),
              Share.valueOf(task[7].toUpperCase(Locale.ROOT)));
      case "consume" -> {
        consumed.reset();
        marked.reset();
        consume(task.length > 1 ? (int) number(task[1]) : 1);
        yield new Numbers();
      }
      case "handled" -> handled();
      case "rest" -> {
        for (Consuming consumer : consumers) {
          consumer.stop();
        }
        consumers.clear();
        yield handled();
      }
      case "herd" ->
          new HerdTask(
                  several((int) number(task[2])),
                  able(Publishing.class).publisher(bench),
                  bench,
                  task[7])
              .run(
                  (int) number(task[1]),
                  (int) number(task[3]),
                  (int) number(task[4]),
                  (int) number(task[5]),
                  (int) number(task[6]));
      case "idle" ->
          latency(task).idle((int) number(task[2]), (int) number(task[3]), Rhythm.of(task, 4));
      case "steady" ->
          latency(task)
              .steady(
                  (int) number(task[2]),
                  (int) number(task[3]),
                  (int) number(task[4]),
                  (int) number(task[5]));
      case "late" ->
          new LateCommitsTask(
                  able(Publishing.class), able(Consuming.class), bench, (int) number(task[1]))
              .run(
                  (int) number(task[2]),
                  (int) number(task[3]),
                  (int) number(task[4]),
                  (int) number(task[5]));
      case "soak" ->
          new SoakTask(able(Publishing.class), able(Consuming.class), bench)
              .run(
                  (int) number(task[1]),
                  (int) number(task[2]),
                  (int) number(task[3]),
                  (int) number(task[4]),
                  (int) number(task[5]));
      case "load-dead" -> {
        able(Redriving.class).loadDead(bench, number(task[1]), (int) number(task[2]));
        yield new Numbers();
      }
      case "redrive" ->
          RedriveTask.run(able(Redriving.class), bench, number(task[1]), (int) number(task[2]));
      case "delayed" -> latency(task).delayed((int) number(task[2]), (int) number(task[3]));
      case "timers" -> {
        Beats beats =
            new Beats(
                (int) number(task[1]),
                Duration.ofMillis(number(task[2])),
                task[3].equals("spread"));
        TimerTask started = new TimerTask(able(Timing.class), bench, beats);
        started.start();
        timers = started;
        yield new Numbers();
      }
      case "look" -> timers().look((int) number(task[1]));
      case "still" -> {
        timers().stop();
        yield new Numbers();
      }
      default -> throw new IllegalArgumentException("unknown task " + task[0]);
    };
  }

  private TimerTask timers() {
    if (timers == null) {
      throw new IllegalStateException("no timers were started");
    }
    return timers;
  }

  private long count(String sql) throws SQLException {
    try (Connection connection = bench.dataSource().getConnection();
        Statement statement = connection.createStatement();
        ResultSet row = statement.executeQuery(sql)) {
      row.next();
      return row.getLong(1);
    }
  }

  /** Starts subscribers, each with connections of its own, until they are told to rest. */
  private void consume(int count) throws Exception {
    List<Consuming> several = count == 1 ? List.of(able(Consuming.class)) : several(count);
    for (Consuming consumer : several) {
      Bench own = count == 1 ? bench : bench.with("name", "member-" + consumers.size());
      consumers.add(consumer);
      consumer.start(own, this::consume);
    }
  }

  private List<Consuming> several(int count) {
    List<Consuming> several = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      several.add(able(byName(contestant.name()), Consuming.class));
    }
    return several;
  }

  private Verdict consume(byte[] payload) {
    (Payloads.sequence(payload) < 0 ? marked : consumed).increment();
    return Verdict.ACK;
  }

  /** Those with a negative sequence number are counted apart. */
  private Numbers handled() {
    return new Numbers().with("handled", consumed.sum()).with("marked", marked.sum());
  }

  private LatencyTask latency(String[] task) {
    return new LatencyTask(
        able(Publishing.class), able(Consuming.class), bench, (int) number(task[1]));
  }

  private <T extends Contestant> T able(Class<T> part) {
    return able(contestant, part);
  }

  private static <T extends Contestant> T able(Contestant contestant, Class<T> part) {
    if (!part.isInstance(contestant)) {
      throw new IllegalArgumentException(
          contestant.name() + " is not " + part.getSimpleName().toLowerCase(Locale.ROOT));
    }
    return part.cast(contestant);
  }

  private static long number(String text) {
    return Long.parseLong(text);
  }
}
