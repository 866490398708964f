package dev.outbox4j.benchmarks.spi;

/**
 * Works off a backlog. The rate is from the first message handled to the last committed end, so a
 * slow start-up is not part of it.
 */
final class DrainTask {
  private DrainTask() {}

  static Numbers run(
      Draining contestant, Bench bench, CountingSink sink, double maxSeconds, boolean shared)
      throws Exception {
    ProcessMeter meter = new ProcessMeter();
    long start = System.nanoTime();
    contestant.start(bench, sink);
    boolean complete = shared ? sink.awaitQuiet(maxSeconds, 1.5) : sink.await(maxSeconds);
    long end = complete ? sink.lastEnd() : System.nanoTime();
    long finished = sink.finished();
    Numbers numbers = meter.read(finished);
    contestant.stop();
    return numbers
        .with("rate", finished / Math.max(1e-9, (end - sink.firstHandled()) / 1e9))
        .with("start_up_ms", (sink.firstHandled() - start) / 1e6)
        .with("complete", complete ? 1 : 0)
        .with("start_ns", sink.firstHandled())
        .with("end_ns", end)
        .with("repeated", sink.repeated())
        .with("handled", sink.handled());
  }
}
