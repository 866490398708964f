package dev.outbox4j.postgres.internal;

import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Binds parameters one after the other. */
final class Parameters {
  private final PreparedStatement statement;
  private int last;

  Parameters(PreparedStatement statement) {
    this.statement = statement;
  }

  Parameters text(@Nullable String value) throws SQLException {
    statement.setString(++last, value);
    return this;
  }

  Parameters number(long value) throws SQLException {
    statement.setLong(++last, value);
    return this;
  }

  Parameters seconds(Duration value) throws SQLException {
    statement.setDouble(++last, ServerTime.seconds(value));
    return this;
  }

  /** An instant with offset, or an array of a type the driver knows. */
  Parameters object(Object value) throws SQLException {
    statement.setObject(++last, value);
    return this;
  }
}
