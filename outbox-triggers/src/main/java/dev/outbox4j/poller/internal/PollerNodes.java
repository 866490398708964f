package dev.outbox4j.poller.internal;

import dev.outbox4j.poller.Poller;
import dev.outbox4j.poller.PollerHealth;
import dev.outbox4j.poller.internal.PollerNode.Shared;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** All pollers of a node. Thread-safe. */
public final class PollerNodes {
  private static final Logger log = LoggerFactory.getLogger(PollerNodes.class);
  private static final Duration AFTER_AN_INTERRUPT = Duration.ofSeconds(5);

  private final List<PollerNode> nodes;

  /**
   * One poller.
   *
   * @param poller its definition
   * @param source where its source is
   * @param handler what it is for
   */
  public record Entry(Poller poller, DataSource source, HandlerCall handler) {}

  /**
   * Creates what is not started; does no I/O.
   *
   * @param shared what is the same for all
   * @param entries each
   */
  public PollerNodes(Shared shared, List<Entry> entries) {
    Renewals renewals = new Renewals(shared.threads(), entries.size());
    this.nodes =
        entries.stream()
            .map(
                entry ->
                    new PollerNode(
                        shared, renewals, entry.poller(), entry.source(), entry.handler()))
            .toList();
  }

  /** Begins to tick. */
  public void start() {
    nodes.forEach(PollerNode::start);
  }

  /** Stops all, and waits for them; whoever takes longer is interrupted. */
  public void stop(Duration patience, boolean started) {
    nodes.forEach(PollerNode::stop);
    if (started) {
      List<PollerNode> left = join(nodes, System.nanoTime() + patience.toNanos());
      if (!left.isEmpty()) {
        log.warn("{} have not ended in {}; their handlers are interrupted", left, patience);
        left.forEach(PollerNode::interrupt);
        left = join(left, System.nanoTime() + AFTER_AN_INTERRUPT.toNanos());
      }
      if (!left.isEmpty()) {
        log.error("{} have not ended after an interrupt, and are left alone", left);
        left.forEach(PollerNode::abandon);
      }
    }
    nodes.forEach(PollerNode::ended);
  }

  private static List<PollerNode> join(List<PollerNode> all, long deadline) {
    List<PollerNode> left = new ArrayList<>();
    for (PollerNode node : all) {
      if (!node.join(deadline)) {
        left.add(node);
      }
    }
    return left;
  }

  /**
   * Returns a poller.
   *
   * @param name its name
   * @return the poller
   * @throws IllegalArgumentException if there is none
   */
  public PollerNode named(String name) {
    return nodes.stream()
        .filter(node -> node.poller().name().equals(name))
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "there is no poller '%s' here; there are %s"
                        .formatted(
                            name, nodes.stream().map(node -> node.poller().name()).toList())));
  }

  /** {@return what is known of each} */
  public List<PollerHealth> health() {
    return nodes.stream().map(PollerNode::health).toList();
  }
}
