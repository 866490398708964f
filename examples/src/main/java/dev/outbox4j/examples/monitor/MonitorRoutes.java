package dev.outbox4j.examples.monitor;

import dev.outbox4j.monitor.http.MonitorHttp;
import dev.outbox4j.monitor.http.MonitorRequest;
import dev.outbox4j.monitor.http.MonitorResponse;
import io.javalin.config.RoutesConfig;
import io.javalin.http.Context;
import java.io.IOException;
import java.util.List;

/** Adapts monitors to Javalin. Whoever may reach these routes may do all that they can. */
final class MonitorRoutes {
  private final MonitorHttp monitors;

  MonitorRoutes(MonitorHttp monitors) {
    this.monitors = monitors;
  }

  void addTo(RoutesConfig routes) {
    for (String path : List.of("/monitors/*", "/instances", "/instances/*")) {
      routes.get(path, this::handle);
      routes.post(path, this::handle);
      routes.put(path, this::handle);
      routes.delete(path, this::handle);
    }
  }

  // tag::adapter
  private void handle(Context context) throws IOException {
    byte[] body = context.bodyInputStream().readNBytes(MonitorHttp.MAX_BODY_BYTES + 1);
    MonitorResponse response =
        monitors.handle(
            MonitorRequest.of(
                context.method().name(),
                context.path(), // both as in the request line
                context.queryString(),
                body));
    context.status(response.status());
    response.headers().forEach(context::header);
    context.result(response.body());
  }
  // end::adapter
}
