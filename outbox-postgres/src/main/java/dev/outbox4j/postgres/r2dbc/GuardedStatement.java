package dev.outbox4j.postgres.r2dbc;

import io.r2dbc.spi.Result;
import io.r2dbc.spi.Statement;
import org.reactivestreams.Publisher;

/**
 * A statement of a handler's: it does not run once the handler has ended. Its connection may have
 * another handler's transaction by then, and would commit it there.
 */
final class GuardedStatement implements Statement {
  private final Statement statement;
  private final GuardedConnection connection;

  GuardedStatement(Statement statement, GuardedConnection connection) {
    this.statement = statement;
    this.connection = connection;
  }

  @Override
  public Publisher<? extends Result> execute() {
    return connection.guarded(statement::execute);
  }

  @Override
  public Statement add() {
    statement.add();
    return this;
  }

  @Override
  public Statement bind(int index, Object value) {
    statement.bind(index, value);
    return this;
  }

  @Override
  public Statement bind(String name, Object value) {
    statement.bind(name, value);
    return this;
  }

  @Override
  public Statement bindNull(int index, Class<?> type) {
    statement.bindNull(index, type);
    return this;
  }

  @Override
  public Statement bindNull(String name, Class<?> type) {
    statement.bindNull(name, type);
    return this;
  }

  @Override
  public Statement returnGeneratedValues(String... columns) {
    statement.returnGeneratedValues(columns);
    return this;
  }

  @Override
  public Statement fetchSize(int rows) {
    statement.fetchSize(rows);
    return this;
  }

  @Override
  public String toString() {
    return "GuardedStatement[" + statement + "]";
  }
}
