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
  private static final String MILLION = "drain 1000000 x 256 B, 1 process";

  /** What a cell without a figure of its own is for: it rounds off the picture. */
  private record Cell(int rows, int bytes, int processes, boolean minor, List<Entrant> entrants) {
    String name() {
      return "drain %d x %d B, %d process%s"
          .formatted(rows, bytes, processes, processes == 1 ? "" : "es");
    }
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
      for (Cell cell : cells.stream().filter(c -> !c.minor() || Settings.minor(current)).toList()) {
        run.turn(
            cell.name(),
            round,
            Roster.asked(
                cell.entrants().stream()
                    .filter(entrant -> Roster.takesPart(entrant, current))
                    .toList()),
            (entrant, database) ->
                new Drain(run, entrant, database)
                    .measure(cell.rows(), cell.bytes(), cell.processes(), false));
      }
    }
  }

  private static List<Cell> cells() {
    List<Entrant> all = new ArrayList<>();
    all.addAll(List.of(Roster.TWIN, Roster.BARE_DELETE));
    all.addAll(Roster.BEST_RAW);
    all.addAll(Roster.SHAPES);
    all.addAll(List.of(Roster.OURS, Roster.TUNED, Roster.SMALL_HEAP));
    all.addAll(Roster.PEERS);
    List<Entrant> few = List.of(Roster.TWIN, Roster.TUNED);
    if (Settings.given("rows") || Settings.given("payload") || Settings.given("processes")) {
      List<Cell> asked = new ArrayList<>();
      for (int rows : Settings.numbers("rows", "1m")) {
        for (int bytes : Settings.numbers("payload", "256")) {
          for (int processes : Settings.numbers("processes", "1")) {
            asked.add(new Cell(rows, bytes, processes, false, processes == 1 ? all : few));
          }
        }
      }
      return asked;
    }
    return List.of(
        new Cell(100_000, 256, 1, false, few),
        new Cell(1_000_000, 256, 1, false, all),
        new Cell(10_000_000, 256, 1, false, List.of(Roster.TUNED)),
        new Cell(100_000, 4096, 1, true, few),
        new Cell(1_000_000, 256, 2, true, few),
        new Cell(1_000_000, 256, 4, true, few));
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    String tuned = Roster.TUNED.label();
    String twin = Roster.TWIN.label();
    results
        .ratio(MILLION, tuned, MILLION, twin, "rate")
        .ifPresent(value -> figures.put("drain_1m_vs_twin", value));
    results
        .ratio(MILLION, Roster.OURS.label(), MILLION, twin, "rate")
        .ifPresent(value -> figures.put("drain_1m_vs_twin_default_settings", value));
    best(results, MILLION, Roster.BEST_RAW)
        .flatMap(best -> results.ratio(MILLION, tuned, MILLION, best, "rate"))
        .ifPresent(value -> figures.put("drain_1m_vs_raw_best", value));
    best(results, MILLION, Roster.PEERS)
        .ifPresent(
            peer -> {
              results
                  .ratio(MILLION, tuned, MILLION, peer, "rate")
                  .ifPresent(value -> figures.put("drain_1m_vs_best_peer", value));
              results
                  .ratio(MILLION, Roster.OURS.label(), MILLION, peer, "rate")
                  .ifPresent(value -> figures.put("drain_1m_vs_best_peer_default_settings", value));
            });
    String tenMillion = "drain 10000000 x 256 B, 1 process";
    results
        .ratio(tenMillion, tuned, "drain 100000 x 256 B, 1 process", tuned, "rate")
        .ifPresent(value -> figures.put("flat_10m_vs_100k", value));
    results
        .ratio(tenMillion, tuned, MILLION, tuned, "rate")
        .ifPresent(value -> figures.put("flat_10m_vs_1m", value));
    results.median(MILLION, tuned, "hot_share").ifPresent(v -> figures.put("hot_share", v));
    results
        .median(MILLION, tuned, "statements_per_message")
        .ifPresent(value -> figures.put("statements_per_message", value));
  }

  /** Who has the greatest median rate. */
  private static Optional<String> best(Results results, String cell, List<Entrant> entrants) {
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
    private static final int WARM_UP = 200_000;

    Numbers measure(int rows, int bytes, int processes, boolean failing)
        throws IOException, SQLException {
      List<ContestantJvm> jvms = new ArrayList<>();
      try {
        for (int i = 0; i < processes; i++) {
          jvms.add(run.start(entrant, database));
        }
        jvms.get(0).perform("prepare");
        warmUp(jvms, bytes);
        jvms.get(0).perform("load 0 " + rows + " " + bytes);
        run.server().execute(database, "vacuum (analyze)");
        return measured(jvms, rows, failing);
      } finally {
        jvms.forEach(ContestantJvm::close);
      }
    }

    /** The compiler's work is not the contestant's: each process drains some rows unmeasured. */
    private void warmUp(List<ContestantJvm> jvms, int bytes) throws IOException {
      int warmUp = Settings.number("warmup", Roster.mayBeStopped(entrant) ? 5_000 : WARM_UP);
      for (int i = 0; i < jvms.size() && warmUp > 0; i++) {
        long first = WARM_UP_FROM + (long) i * warmUp;
        jvms.get(i).perform("load " + first + " " + warmUp + " " + bytes);
        Numbers warmedUp = jvms.get(i).perform("drain " + first + " " + warmUp + " 60 plain alone");
        if (Parts.value(warmedUp, "complete") < 1) {
          throw new IOException("the warm-up is not done in time: " + warmedUp);
        }
      }
    }

    private Numbers measured(List<ContestantJvm> jvms, int rows, boolean failing)
        throws IOException, SQLException {
      int seconds =
          Roster.mayBeStopped(entrant)
              ? Settings.number("peer.seconds", 10)
              : Settings.number("drain.seconds", 1800);
      String task =
          "drain 0 "
              + rows
              + " "
              + seconds
              + (failing ? " failing" : " plain")
              + (jvms.size() > 1 ? " shared" : " alone");
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
