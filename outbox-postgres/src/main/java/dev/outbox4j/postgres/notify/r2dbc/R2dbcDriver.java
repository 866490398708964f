package dev.outbox4j.postgres.notify.r2dbc;

import dev.outbox4j.internal.Causes;
import dev.outbox4j.postgres.internal.Redaction;
import dev.outbox4j.postgres.notify.internal.ListenConnection;
import dev.outbox4j.postgres.notify.internal.ListenDriver;
import dev.outbox4j.postgres.notify.internal.Pools;
import io.r2dbc.postgresql.api.PostgresqlConnection;
import io.r2dbc.spi.Connection;
import io.r2dbc.spi.ConnectionFactory;
import io.r2dbc.spi.R2dbcException;
import io.r2dbc.spi.Wrapped;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;

/** Opens connections of r2dbc-postgresql. */
final class R2dbcDriver implements ListenDriver {
  private static final String ADVICE =
      "give an unpooled factory of r2dbc-postgresql, such as a PostgresqlConnectionFactory";

  private static final Logger LOG = LoggerFactory.getLogger(R2dbcDriver.class);

  private final ConnectionFactory factory;

  private R2dbcDriver(ConnectionFactory factory) {
    this.factory = factory;
  }

  static R2dbcDriver of(ConnectionFactory factory) {
    Objects.requireNonNull(factory, "factory");
    for (Object layer = factory; layer != null; layer = unwrap(layer)) {
      Pools.refuse(layer, ADVICE);
    }
    return new R2dbcDriver(factory);
  }

  @Override
  public String name() {
    return "r2dbc-postgresql";
  }

  @Override
  public @Nullable String sqlState(Throwable thrown) {
    for (Throwable each : Causes.of(thrown)) {
      if (each instanceof R2dbcException told && told.getSqlState() != null) {
        return told.getSqlState();
      }
    }
    return null;
  }

  @Override
  public ListenConnection open(Consumer<String> onNotification, Duration limit) throws Exception {
    Connection connection = connect();
    try {
      return new R2dbcListenConnection(driverConnection(connection), onNotification, limit);
    } catch (Exception e) {
      close(connection);
      throw e;
    }
  }

  private Connection connect() throws Exception {
    CompletableFuture<? extends Connection> future = Mono.from(factory.create()).toFuture();
    try {
      return Objects.requireNonNull(future.get(), "the factory gave no connection");
    } catch (ExecutionException e) {
      throw e.getCause() instanceof Exception exception ? exception : e;
    } catch (InterruptedException e) {
      // not cancelled: the driver drops a connection that comes after that without closing it
      CompletableFuture<Void> unused = future.thenAccept(R2dbcDriver::close);
      throw e;
    }
  }

  private static void close(Connection connection) {
    Mono.from(connection.close())
        .subscribe(
            nothing -> {},
            e -> LOG.debug("Closing a connection that was not needed failed", Redaction.redact(e)));
  }

  private static PostgresqlConnection driverConnection(Connection connection) {
    for (Object layer = connection; layer != null; layer = unwrap(layer)) {
      Pools.refuse(layer, ADVICE);
      if (layer instanceof PostgresqlConnection found) {
        return found;
      }
    }
    throw Pools.pooled(connection, ADVICE);
  }

  private static @Nullable Object unwrap(Object layer) {
    return layer instanceof Wrapped<?> wrapped ? wrapped.unwrap() : null;
  }
}
