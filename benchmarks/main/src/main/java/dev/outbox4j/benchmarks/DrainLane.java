package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.spi.Numbers;
import java.io.IOException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A backlog worked off by a handler that does nothing. */
final class DrainLane implements Lane {
  private static final String MILLION = name(1_000_000, 256, 1);

  /** Those of a part take their turns one right after the other. */
  private record Cell(
      int rows, int bytes, int processes, Rounds rounds, List<List<Entrant>> parts) {
    String name() {
      return DrainLane.name(rows, bytes, processes);
    }
  }

  static String name(int rows, int bytes, int processes) {
    return "drain %d x %d B, %d process%s"
        .formatted(rows, bytes, processes, processes == 1 ? "" : "es");
  }

  @Override
  public String name() {
    return "drain";
  }

  @Override
  public void run(Run run) throws SQLException {
    List<Cell> cells = cells();
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      int current = round;
      for (Cell cell : cells.stream().filter(c -> c.rounds().include(current)).toList()) {
        for (List<Entrant> part : cell.parts()) {
          run.turn(
              cell.name(),
              round,
              Roster.asked(
                  part.stream()
                      .filter(entrant -> Roster.rounds(entrant).include(current))
                      .toList()),
              (entrant, database) ->
                  new Drain(run, entrant, database)
                      .measure(cell.rows(), cell.bytes(), cell.processes(), false));
        }
      }
    }
  }

  private static List<Cell> cells() {
    List<Entrant> few = List.of(Roster.TWIN, Roster.OURS);
    List<Entrant> byHand = new ArrayList<>(few);
    byHand.addAll(Roster.BEST_RAW);
    List<Entrant> picture = new ArrayList<>(List.of(Roster.BARE_DELETE, Roster.SMALL_HEAP));
    picture.addAll(Roster.SHAPES);
    List<List<Entrant>> all = List.of(byHand, picture);
    if (Settings.given("rows") || Settings.given("payload") || Settings.given("processes")) {
      List<Cell> asked = new ArrayList<>();
      for (int rows : Settings.numbers("rows", "1m")) {
        for (int bytes : Settings.numbers("payload", "256")) {
          for (int processes : Settings.numbers("processes", "1")) {
            asked.add(
                new Cell(rows, bytes, processes, Rounds.ALL, processes == 1 ? all : List.of(few)));
          }
        }
      }
      return asked;
    }
    return List.of(
        new Cell(100_000, 256, 1, Rounds.ALL, List.of(few)),
        new Cell(1_000_000, 256, 1, Rounds.ALL, all),
        new Cell(10_000_000, 256, 1, Rounds.FIRST_THREE, List.of(List.of(Roster.OURS))),
        new Cell(100_000, 4096, 1, Rounds.FIRST, List.of(few)),
        new Cell(1_000_000, 256, 2, Rounds.ALL, List.of(few)),
        new Cell(1_000_000, 256, 4, Rounds.FIRST, List.of(few)));
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String ours = Roster.OURS.label();
    String twin = Roster.TWIN.label();
    results
        .ratio(MILLION, ours, MILLION, twin, "rate")
        .ifPresent(value -> figures.put("drain_1m_vs_twin", value));
    best(results, MILLION, Roster.BEST_RAW)
        .flatMap(best -> results.ratio(MILLION, ours, MILLION, best, "rate"))
        .ifPresent(value -> figures.put("drain_1m_vs_raw_best", value));
    String twoProcesses = name(1_000_000, 256, 2);
    results
        .ratio(twoProcesses, ours, twoProcesses, twin, "rate")
        .ifPresent(value -> figures.put("drain_1m_2_processes_vs_twin", value));
    String tenMillion = name(10_000_000, 256, 1);
    results
        .ratio(tenMillion, ours, name(100_000, 256, 1), ours, "rate")
        .ifPresent(value -> figures.put("flat_10m_vs_100k", value));
    results
        .ratio(tenMillion, ours, MILLION, ours, "rate")
        .ifPresent(value -> figures.put("flat_10m_vs_1m", value));
    results.median(MILLION, ours, "hot_share").ifPresent(v -> figures.put("hot_share", v));
    results
        .median(MILLION, ours, "statements_per_message")
        .ifPresent(value -> figures.put("statements_per_message", value));
  }

  /** Who has the greatest median rate. */
  static Optional<String> best(Results results, String cell, List<Entrant> entrants) {
    return entrants.stream()
        .map(Entrant::label)
        .filter(label -> results.median(cell, label, "rate").isPresent())
        .max(
            Comparator.comparing(
                label -> results.median(cell, label, "rate").orElseThrow().value()));
  }

  /** One contestant's drain. */
  record Drain(Run run, Entrant entrant, String database) {
    private static final long WARM_UP_FROM = 1L << 40;
    private static final int WARM_UP_SECONDS = 12;
    private static final int WARM_UP = 200_000;
    private static final int SHARED_WARM_UPS = 2;
    private static final int LEAST_WARM_UP = 5_000;

    Numbers measure(int rows, int bytes, int processes, boolean failing)
        throws IOException, SQLException {
      String how = failing ? "failing" : "plain";
      List<ContestantJvm> jvms = new ArrayList<>();
      try {
        for (int i = 0; i < processes; i++) {
          jvms.add(run.start(entrant, database));
        }
        jvms.get(0).perform("prepare");
        warmUp(jvms, bytes, how);
        jvms.get(0).perform("load 0 " + rows + " " + bytes);
        run.server().execute(database, "vacuum (analyze)");
        return measured(jvms, rows, how);
      } finally {
        jvms.forEach(ContestantJvm::close);
      }
    }

    /**
     * The compiler's work is not the contestant's: each process drains backlogs unmeasured until it
     * has done so for a while. Those who take longer for each row have longer, and backlogs of
     * which each takes some 10 s. Several then share some, since sharing takes other paths.
     */
    private void warmUp(List<ContestantJvm> jvms, int bytes, String how)
        throws IOException, SQLException {
      boolean slow = Roster.mayBeStopped(entrant);
      double seconds =
          slow
              ? Settings.number("peer.warmup.seconds", 30)
              : Settings.number("warmup.seconds", WARM_UP_SECONDS);
      int rows = slow ? LEAST_WARM_UP : WARM_UP;
      long first = WARM_UP_FROM;
      for (ContestantJvm jvm : jvms) {
        double warm = 0;
        while (warm < seconds) {
          Numbers warmedUp = warmUp(jvm, first, rows, bytes, how);
          first += rows;
          double rate = Parts.value(warmedUp, "rate");
          warm += rows / rate;
          if (slow) {
            rows = (int) Math.min(WARM_UP, Math.max(LEAST_WARM_UP, 10 * rate));
          }
        }
      }
      for (int i = 0; i < SHARED_WARM_UPS && jvms.size() > 1; i++) {
        int shared = rows * jvms.size();
        load(jvms.get(0), first, shared, bytes);
        String task = "drain " + first + " " + shared + " 120 " + how + " shared";
        jvms.forEach(jvm -> jvm.send(task));
        List<Numbers> parts = new ArrayList<>();
        for (ContestantJvm jvm : jvms) {
          parts.add(jvm.receive(task));
        }
        requireComplete(together(parts, shared));
        first += shared;
      }
    }

    private Numbers warmUp(ContestantJvm jvm, long first, int rows, int bytes, String how)
        throws IOException, SQLException {
      load(jvm, first, rows, bytes);
      return requireComplete(jvm.perform("drain " + first + " " + rows + " 120 " + how + " alone"));
    }

    private void load(ContestantJvm jvm, long first, int rows, int bytes)
        throws IOException, SQLException {
      jvm.perform("load " + first + " " + rows + " " + bytes);
      // a peer's plan for a table that is taken for empty can take minutes
      run.server().execute(database, "analyze");
    }

    private static Numbers requireComplete(Numbers warmedUp) throws IOException {
      if (Parts.value(warmedUp, "complete") < 1) {
        throw new IOException("the warm-up is not done in time: " + warmedUp);
      }
      return warmedUp;
    }

    private Numbers measured(List<ContestantJvm> jvms, int rows, String how)
        throws IOException, SQLException {
      int seconds =
          Roster.mayBeStopped(entrant)
              ? Settings.number("peer.seconds", 60)
              : Settings.number("drain.seconds", 1800);
      String task =
          "drain 0 " + rows + " " + seconds + " " + how + (jvms.size() > 1 ? " shared" : " alone");
      try (Watch watch = new Watch(run.server(), database)) {
        jvms.forEach(jvm -> jvm.send(task));
        List<Numbers> parts = new ArrayList<>();
        for (ContestantJvm jvm : jvms) {
          parts.add(jvm.receive(task));
        }
        Numbers total = parts.size() == 1 ? parts.get(0) : together(parts, rows);
        // one that was cut does some more until it stands still, which the server counts too
        boolean cut = Parts.value(total, "complete") < 1;
        watch.read(total, Parts.value(total, cut ? "handled" : "messages"));
        return cut ? total : Completeness.of(jvms, rows, total);
      }
    }

    static Numbers together(List<Numbers> parts, int rows) {
      double messages = Parts.sum(parts, "messages");
      // one that came too late for any has neither a start nor an end
      List<Numbers> busy = parts.stream().filter(p -> Parts.value(p, "messages") > 0).toList();
      double start =
          busy.stream().mapToDouble(p -> Parts.value(p, "start_ns")).min().orElse(Double.NaN);
      double end =
          busy.stream().mapToDouble(p -> Parts.value(p, "end_ns")).max().orElse(Double.NaN);
      return Parts.costs(parts)
          .with("rate", messages / (end - start) * 1e9)
          .with("complete", messages >= rows ? 1 : 0)
          .with("repeated", Parts.sum(parts, "repeated"));
    }
  }
}
