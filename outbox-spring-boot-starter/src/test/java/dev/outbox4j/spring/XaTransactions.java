package dev.outbox4j.spring;

import jakarta.transaction.Status;
import jakarta.transaction.SystemException;
import jakarta.transaction.UserTransaction;
import java.nio.ByteBuffer;
import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.XAConnection;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.jspecify.annotations.Nullable;
import org.postgresql.xa.PGXADataSource;
import org.springframework.jdbc.datasource.AbstractDataSource;

/**
 * Transactions of JTA with one resource, PostgreSQL, and the data source of which connections are
 * enlisted. For one thread.
 */
final class XaTransactions extends AbstractDataSource implements UserTransaction {
  private final PGXADataSource server = new PGXADataSource();
  private @Nullable XAConnection enlisted;
  private @Nullable Connection connection;
  private long last;
  private boolean rollbackOnly;

  XaTransactions(String url, String user) {
    server.setUrl(url);
    server.setUser(user);
  }

  private record Id(long number) implements Xid {
    @Override
    public int getFormatId() {
      return 1;
    }

    @Override
    public byte[] getGlobalTransactionId() {
      return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }

    @Override
    public byte[] getBranchQualifier() {
      return new byte[0];
    }
  }

  private Id id() {
    return new Id(last);
  }

  @Override
  public void begin() throws SystemException {
    last++;
    rollbackOnly = false;
    run(
        () -> {
          enlisted = server.getXAConnection();
          connection = enlisted.getConnection(); // before the start, or it would commit by itself
          enlisted.getXAResource().start(id(), XAResource.TMNOFLAGS);
        });
  }

  @Override
  public void commit() throws SystemException {
    end(resource -> resource.commit(id(), true));
  }

  @Override
  public void rollback() throws SystemException {
    end(resource -> resource.rollback(id()));
  }

  private interface End {
    void of(XAResource resource) throws XAException;
  }

  private void end(End end) throws SystemException {
    XAConnection ending = enlisted;
    if (ending == null) {
      throw new IllegalStateException("there is no transaction");
    }
    enlisted = null;
    run(
        () -> {
          try {
            ending.getXAResource().end(id(), XAResource.TMSUCCESS);
            end.of(ending.getXAResource());
          } finally {
            ending.close();
          }
        });
  }

  private interface Step {
    void run() throws SQLException, XAException;
  }

  private static void run(Step step) throws SystemException {
    try {
      step.run();
    } catch (SQLException | XAException e) {
      SystemException failure = new SystemException(e.toString());
      failure.initCause(e);
      throw failure;
    }
  }

  @Override
  public void setRollbackOnly() {
    rollbackOnly = true;
  }

  @Override
  public int getStatus() {
    if (enlisted == null) {
      return Status.STATUS_NO_TRANSACTION;
    }
    return rollbackOnly ? Status.STATUS_MARKED_ROLLBACK : Status.STATUS_ACTIVE;
  }

  @Override
  public void setTransactionTimeout(int seconds) {
    // these are short
  }

  @Override
  public Connection getConnection() {
    if (enlisted == null || connection == null) {
      throw new IllegalStateException("there is no transaction");
    }
    return connection;
  }

  @Override
  public Connection getConnection(String username, String password) {
    return getConnection();
  }
}
