package dev.outbox4j.internal.run;

import dev.outbox4j.internal.state.Buffer;
import dev.outbox4j.internal.state.Prefetch;

/** Where claimed rows are kept and run. */
public record Rows(Buffer buffer, WorkerPool pool, Prefetch prefetch) {}
