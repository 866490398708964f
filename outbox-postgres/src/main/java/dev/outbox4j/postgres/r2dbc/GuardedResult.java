package dev.outbox4j.postgres.r2dbc;

import io.r2dbc.spi.Readable;
import io.r2dbc.spi.Result;
import io.r2dbc.spi.Row;
import io.r2dbc.spi.RowMetadata;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Predicate;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;

/** A result of a handler's statement. Until it is read, the statement may not have run. */
final class GuardedResult implements Result {
  private final Result result;
  private final Runnable read;

  /**
   * Wraps a result.
   *
   * @param read told each time that somebody reads it
   */
  GuardedResult(Result result, Runnable read) {
    this.result = result;
    this.read = read;
  }

  private <T> Flux<T> told(Publisher<T> reading) {
    return Flux.from(reading).doOnSubscribe(subscription -> read.run());
  }

  @Override
  public Publisher<Long> getRowsUpdated() {
    return told(result.getRowsUpdated());
  }

  @Override
  public <T> Publisher<T> map(BiFunction<Row, RowMetadata, ? extends T> mapping) {
    return told(result.map(mapping));
  }

  @Override
  public <T> Publisher<T> map(Function<? super Readable, ? extends T> mapping) {
    return told(result.map(mapping));
  }

  @Override
  public Result filter(Predicate<Segment> filter) {
    return new GuardedResult(result.filter(filter), read);
  }

  @Override
  public <T> Publisher<T> flatMap(Function<Segment, ? extends Publisher<? extends T>> mapping) {
    return told(result.flatMap(mapping));
  }
}
