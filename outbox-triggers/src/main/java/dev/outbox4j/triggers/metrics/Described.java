package dev.outbox4j.triggers.metrics;

import java.util.List;

/** What the registry is told of a meter. */
interface Described {

  /** The name by which the registry knows it. */
  String id();

  /** The keys of its tags, in order. */
  List<String> tags();

  /** What it means. */
  String description();
}
