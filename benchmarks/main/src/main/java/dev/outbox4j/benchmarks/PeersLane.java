package dev.outbox4j.benchmarks;

import dev.outbox4j.benchmarks.DrainLane.Drain;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A backlog worked off by other libraries, where they do the same work. */
final class PeersLane implements Lane {
  private static final int MILLION = 1_000_000;

  /** Where those look best whose polls cost more the more rows there are. */
  private static final int SMALL = 10_000;

  /** A peer that has less than this of the fastest one's rate in the first round is left out. */
  private static final double HOPELESS = 1 / 3.0;

  private static final int BYTES = 256;

  /** Those of a part take their turns one right after the other. */
  private static final List<List<Entrant>> PARTS =
      List.of(List.of(Roster.TWIN, Roster.OURS), Roster.PEERS);

  @Override
  public String name() {
    return "peers";
  }

  static String cell(int rows) {
    return "peers, drain %d x %d B, 1 process".formatted(rows, BYTES);
  }

  @Override
  public void run(Run run) throws SQLException {
    for (int round = 0; round < Settings.rounds() && !run.over(); round++) {
      if (Rounds.FIRST_THREE.include(round)) {
        for (int rows : Settings.numbers("rows", "10k,1m")) {
          for (List<Entrant> part : PARTS) {
            run.turn(
                cell(rows),
                round,
                Roster.asked(
                    part.stream()
                        .filter(entrant -> hasAChance(run.results(), cell(rows), entrant))
                        .toList()),
                (entrant, database) ->
                    new Drain(run, entrant, database).measure(rows, BYTES, 1, false));
          }
        }
      }
    }
  }

  /** Only the fastest peer counts, so the time is for those who may be it. */
  static boolean hasAChance(Results results, String cell, Entrant entrant) {
    Optional<Figure> rate = results.median(cell, entrant.label(), "rate");
    return !Roster.isPeer(entrant)
        || rate.isEmpty()
        || DrainLane.best(results, cell, Roster.PEERS)
            .flatMap(best -> results.median(cell, best, "rate"))
            .map(best -> rate.get().value() >= HOPELESS * best.value())
            .orElse(true);
  }

  @Override
  public void figures(Results results, Map<String, Figure> figures) {
    againstTheBest(results, cell(MILLION), "drain_1m_vs_best_peer", figures);
    againstTheBest(results, cell(SMALL), "drain_10k_vs_best_peer", figures);
  }

  private static void againstTheBest(
      Results results, String cell, String name, Map<String, Figure> figures) {
    DrainLane.best(results, cell, Roster.PEERS)
        .flatMap(peer -> results.ratio(cell, Roster.OURS.label(), cell, peer, "rate"))
        .ifPresent(value -> figures.put(name, value));
  }
}
