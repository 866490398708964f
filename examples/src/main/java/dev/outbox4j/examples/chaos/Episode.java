package dev.outbox4j.examples.chaos;

/** A fault that is over: how long the fleet took to be well again, and what shows that it was. */
record Episode(Recovery recovery, Evidence evidence) {}
