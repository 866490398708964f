package dev.outbox4j.examples.chaos;

import com.zaxxer.hikari.SQLExceptionOverride;
import java.sql.SQLException;

// tag::eviction
/** Has HikariCP give up connections to a server that is no primary any more. */
public class ReadOnlyEviction implements SQLExceptionOverride {
  @java.lang.Override
  public SQLExceptionOverride.Override adjudicate(SQLException failure) {
    return "25006".equals(failure.getSQLState()) ? Override.MUST_EVICT : Override.CONTINUE_EVICT;
  }
}
// end::eviction
