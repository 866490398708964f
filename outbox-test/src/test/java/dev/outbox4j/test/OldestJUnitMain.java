package dev.outbox4j.test;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/** Runs a class of tests by whatever JUnit is on the class path, and says what became of them. */
final class OldestJUnitMain {
  private OldestJUnitMain() {}

  @ExtendWith(OutboxPostgres.class)
  static final class Tests {
    private final DataSource dataSource;

    Tests(DataSource dataSource) {
      this.dataSource = dataSource;
    }

    @Test
    void isEmptyAtFirst() throws SQLException {
      fill();
    }

    @Test
    void isEmptyAfterwards() throws SQLException {
      fill();
    }

    private void fill() throws SQLException {
      try (Connection connection = dataSource.getConnection();
          Statement statement = connection.createStatement();
          ResultSet id =
              statement.executeQuery("select outbox_publish('orders', convert_to('x', 'UTF8'))")) {
        if (!id.next() || id.getLong(1) != 1) {
          throw new AssertionError("This is not the first row");
        }
      }
    }
  }

  public static void main(String[] arguments) {
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    LauncherFactory.create()
        .execute(
            LauncherDiscoveryRequestBuilder.request().selectors(selectClass(Tests.class)).build(),
            listener);
    TestExecutionSummary summary = listener.getSummary();
    summary.getFailures().forEach(failure -> failure.getException().printStackTrace());
    System.out.printf(
        "%s: %d succeeded, %d failed%n",
        "JUnit " + version(), summary.getTestsSucceededCount(), summary.getTotalFailureCount());
    System.exit(summary.getTotalFailureCount() == 0 ? 0 : 1);
  }

  private static String version() {
    return Test.class.getPackage().getImplementationVersion();
  }
}
