package dev.outbox4j.examples.chaos;

/**
 * How long it took until a message was handled again, or after a kill the victim's rows, and until
 * every subscriber was well again.
 */
record Recovery(double seconds, double allWellSeconds) {}
