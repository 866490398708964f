package dev.outbox4j.postgres.internal;

import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** Steps through the results of one execution of several statements. */
public final class Results {
  private final PreparedStatement statement;
  private boolean rows;

  private Results(PreparedStatement statement, boolean rows) {
    this.statement = statement;
    this.rows = rows;
  }

  /**
   * Runs a statement.
   *
   * @param statement of several
   * @return its results, of which the first is the current one
   * @throws SQLException if it failed
   */
  public static Results of(PreparedStatement statement) throws SQLException {
    return new Results(statement, statement.execute());
  }

  /**
   * Returns the rows of the current statement.
   *
   * @return the rows
   * @throws SQLException if it gave an update count instead
   */
  public ResultSet rows() throws SQLException {
    if (!rows) {
      throw new SQLException("A statement gave an update count instead of rows", "HY000");
    }
    return statement.getResultSet();
  }

  /**
   * Goes on to the next statement.
   *
   * @return this
   * @throws SQLException if it failed
   */
  public Results next() throws SQLException {
    rows = statement.getMoreResults();
    return this;
  }

  /**
   * Returns how many rows the current statement changed.
   *
   * @return the number; -1 if it gave rows
   * @throws SQLException if it failed
   */
  public int updated() throws SQLException {
    return rows ? -1 : statement.getUpdateCount();
  }
}
