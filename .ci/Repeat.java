import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.util.Arrays;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

/** Runs test classes again and again in one JVM: how often, then their names. See repeat-tests. */
final class Repeat {
  private Repeat() {}

  public static void main(String[] arguments) {
    int runs = Integer.parseInt(arguments[0]);
    LauncherDiscoveryRequest tests =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(
                Arrays.stream(arguments).skip(1).map(name -> selectClass(name)).toList())
            .build();
    Launcher launcher = LauncherFactory.create();
    long failed = 0;
    for (int run = 1; run <= runs; run++) {
      SummaryGeneratingListener listener = new SummaryGeneratingListener();
      launcher.execute(tests, listener);
      var summary = listener.getSummary();
      summary
          .getFailures()
          .forEach(
              failure -> {
                System.out.println("FAILED " + failure.getTestIdentifier().getUniqueId());
                failure.getException().printStackTrace(System.out);
              });
      failed += summary.getTotalFailureCount();
      System.out.println("run " + run + ": " + summary.getTestsSucceededCount() + " passed");
      if (summary.getTestsSucceededCount() == 0) {
        failed++;
      }
    }
    System.exit(failed == 0 ? 0 : 1);
  }
}
