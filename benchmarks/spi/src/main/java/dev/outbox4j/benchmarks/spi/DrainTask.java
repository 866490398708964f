package dev.outbox4j.benchmarks.spi;

/** Works off a backlog: from the start of the consumer to the last committed end. */
final class DrainTask {
  private DrainTask() {}

  static Numbers run(
      Contestant contestant,
      Bench bench,
      long first,
      long rows,
      double maxSeconds,
      boolean failing,
      boolean shared)
      throws Exception {
    CountingSink sink =
        new CountingSink(first, rows, failing, contestant.reportsAcks(), sequence -> {});
    ProcessMeter meter = new ProcessMeter();
    long start = System.nanoTime();
    contestant.start(bench, sink);
    boolean complete = shared ? sink.awaitQuiet(maxSeconds, 1.5) : sink.await(maxSeconds);
    Numbers numbers = meter.read(sink.finished());
    contestant.stop();
    return numbers
        .with("complete", complete ? 1 : 0)
        .with("start_ns", start)
        .with("end_ns", sink.lastEnd())
        .with("repeated", sink.repeated())
        .with("handled", sink.handled());
  }
}
