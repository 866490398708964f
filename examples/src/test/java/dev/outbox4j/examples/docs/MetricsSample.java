package dev.outbox4j.examples.docs;

import dev.outbox4j.Delivery;
import dev.outbox4j.OutboxSubscriber;
import dev.outbox4j.metrics.MicrometerMetrics;
import dev.outbox4j.postgres.OutboxTable;
import dev.outbox4j.postgres.PostgresOutbox;
import dev.outbox4j.postgres.metrics.OutboxDepthMetrics;
import dev.outbox4j.spi.DeadLetters;
import io.micrometer.core.instrument.MeterRegistry;
import javax.sql.DataSource;

/** Shown in docs/metrics.md. */
abstract class MetricsSample {
  record Order(String id) {}

  abstract void ship(Order order, Delivery delivery);

  OutboxSubscriber observe(
      DataSource dataSource,
      OutboxTable table,
      DeadLetters deadLetters,
      MeterRegistry meterRegistry) {
    // tag::observe
    OutboxSubscriber subscriber =
        OutboxSubscriber.builder("orders")
            .store(PostgresOutbox.on(dataSource, table).store())
            .deadLetters(deadLetters)
            .on("order.placed", Order.class, this::ship)
            .events(MicrometerMetrics.on(meterRegistry))
            .build();
    // end::observe
    return subscriber;
  }

  OutboxDepthMetrics depths(DataSource dataSource, OutboxTable table, MeterRegistry meterRegistry) {
    // tag::depths
    OutboxDepthMetrics depths =
        OutboxDepthMetrics.on(meterRegistry, PostgresOutbox.on(dataSource, table));
    depths.start(); // and stop() before the pool is closed
    // end::depths
    return depths;
  }
}
