package dev.outbox4j.benchmarks;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * The time that the processes of a PostgreSQL server on this machine have used, of a Linux that
 * tells: those that work for the server itself, such as autovacuum and the WAL writer, included.
 */
final class ServerCpu {
  /** As a kernel counts for programs, whatever its own clock. */
  private static final double TICKS_A_SECOND = 100;

  private static final Path PROCESSES = Path.of("/proc");

  private final Path processes;
  private final long postmaster;

  private ServerCpu(Path processes, long postmaster) {
    this.processes = processes;
    this.postmaster = postmaster;
  }

  /** The server of a session, by the process of that. */
  static ServerCpu of(long backend) {
    return of(PROCESSES, backend);
  }

  static ServerCpu of(Path processes, long backend) {
    Stat stat = Stat.of(processes, backend);
    return new ServerCpu(processes, stat.name().equals("postgres") ? stat.parent() : 0);
  }

  /** Returns the time of all that run and of all that have ended; not a number if unknown. */
  double seconds() {
    if (postmaster == 0) {
      return Double.NaN;
    }
    try (Stream<Path> all = Files.list(processes)) {
      long running =
          all.map(process -> process.getFileName().toString())
              .filter(name -> name.chars().allMatch(Character::isDigit))
              .map(name -> Stat.of(processes, Long.parseLong(name)))
              .filter(stat -> stat.parent() == postmaster)
              .mapToLong(Stat::own)
              .sum();
      Stat server = Stat.of(processes, postmaster);
      return (running + server.own() + server.ended()) / TICKS_A_SECOND;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Returns the time of one process; zero if it is over or unknown. */
  double seconds(long process) {
    return Stat.of(processes, process).own() / TICKS_A_SECOND;
  }

  /**
   * What is told of a process.
   *
   * @param name its program
   * @param parent who started it
   * @param own its time, in ticks
   * @param ended that of those it had started that have ended
   */
  private record Stat(String name, long parent, long own, long ended) {
    private static final Stat UNKNOWN = new Stat("", 0, 0, 0);

    static Stat of(Path processes, long process) {
      try {
        String line = Files.readString(processes.resolve(Long.toString(process)).resolve("stat"));
        int end = line.lastIndexOf(')'); // a name may have anything in it
        List<String> fields = List.of(line.substring(end + 2).trim().split(" ", -1));
        return new Stat(
            line.substring(line.indexOf('(') + 1, end),
            Long.parseLong(fields.get(1)),
            Long.parseLong(fields.get(11)) + Long.parseLong(fields.get(12)),
            Long.parseLong(fields.get(13)) + Long.parseLong(fields.get(14)));
      } catch (IOException e) { // on another machine, or over
        return UNKNOWN;
      }
    }
  }
}
