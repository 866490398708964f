package dev.outbox4j.examples.monitor;

import io.javalin.Javalin;
import io.javalin.http.Context;
import io.javalin.http.HttpStatus;
import java.net.URI;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** Plays the API that has the repositories. */
final class LocalIssuesApi implements AutoCloseable {
  private final Map<String, Integer> openIssues = new ConcurrentHashMap<>();
  private final AtomicInteger failures = new AtomicInteger();
  private final Javalin http =
      Javalin.create(
          config -> {
            config.startup.showJavalinBanner = false;
            config.startup.showOldJavalinVersionWarning = false;
            config.routes.get("/repos/{owner}/{name}", this::repository);
          });

  void start() {
    http.start(0);
  }

  URI url() {
    return URI.create("http://localhost:" + http.port());
  }

  /** Says how many open issues a repository has from now on. */
  void setOpenIssues(String repository, int count) {
    openIssues.put(repository, count);
  }

  /** Fails the next requests. */
  void failNext(int requests) {
    failures.set(requests);
  }

  private void repository(Context request) {
    String name = request.pathParam("owner") + "/" + request.pathParam("name");
    Integer count = openIssues.get(name);
    if (failures.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
      request.status(HttpStatus.BAD_GATEWAY);
    } else if (count == null) {
      request.status(HttpStatus.NOT_FOUND);
    } else {
      request.json(Map.of("full_name", name, "open_issues_count", count));
    }
  }

  @Override
  public void close() {
    http.stop();
  }
}
