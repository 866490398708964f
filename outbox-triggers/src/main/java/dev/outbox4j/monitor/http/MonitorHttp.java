package dev.outbox4j.monitor.http;

import dev.outbox4j.OutboxException;
import dev.outbox4j.internal.OneLine;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorAnswer;
import dev.outbox4j.monitor.MonitorControl;
import dev.outbox4j.monitor.MonitorType;
import java.net.URI;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The monitors of an application by HTTP: makes a response of a request. It is no server, and knows
 * nobody: who may call it the server decides that it is adapted to. Immutable and thread-safe.
 *
 * <p>What it has is in the guide to monitors. A body is an input or what an event brings, as JSON;
 * an empty one is {@code null}. Who is refused is told why in {@code error}; what is refused has
 * changed nothing.
 */
public final class MonitorHttp {
  /** The bytes that the body of a request may have: {@value}. */
  public static final int MAX_BODY_BYTES = Json.MAX_BYTES;

  static final String TERMINATE = "terminate";
  static final String SUSPEND = "suspend";
  static final String RESUME = "resume";
  static final String RESTART = "restart";
  static final String WAKE = "wake";
  static final String RAISE_EVENT = "raiseEvent";

  private static final Logger LOG = LoggerFactory.getLogger(MonitorHttp.class);
  private static final Duration LONGEST_WAIT = Duration.ofDays(1);

  private final String application;
  private final Starts starts;
  private final Lookups lookups;
  private final Verbs verbs;

  private MonitorHttp(Builder builder) {
    Replies replies = new Replies(new Links(builder.baseUrl));
    this.application = builder.control.application();
    this.lookups = new Lookups(builder.control, replies);
    this.verbs = new Verbs(builder.control, replies);
    this.starts = new Starts(builder.control, builder.types, builder.longestWait, replies);
  }

  /**
   * Begins to define what is served.
   *
   * @param control what is asked. With a codec it refuses inputs that are not of their type;
   *     without one the first check of such an instance fails
   * @return a builder
   */
  public static Builder builder(MonitorControl control) {
    return new Builder(control);
  }

  /**
   * Does what a request says. With {@code timeout} it holds its thread until the instance has ended
   * or the time is over; else each request is one short transaction, or some for a purge of many.
   *
   * @param request the request
   * @return the response; 503 if the database or the control's codec could not do it, which is
   *     logged
   */
  public MonitorResponse handle(MonitorRequest request) {
    if (request.body().size() > MAX_BODY_BYTES) {
      return Replies.refused(
          413,
          "the body may have " + MAX_BODY_BYTES + " bytes; keep it elsewhere and name the place");
    }
    try {
      return route(request);
    } catch (IllegalArgumentException e) {
      return Replies.refused(400, String.valueOf(e.getMessage()));
    } catch (OutboxException e) { // of the database, or of the control's codec
      LOG.warn(
          "monitors of {}: {} {} failed",
          application,
          OneLine.of(request.method()),
          OneLine.of(request.path()),
          e);
      return Replies.unavailable();
    }
  }

  private MonitorResponse route(MonitorRequest request) {
    List<String> path = segments(request.path());
    return switch (path.get(0)) {
      case "monitors" -> monitors(request, path);
      case "instances" -> instances(request, path);
      default -> Replies.nothingHere();
    };
  }

  private MonitorResponse monitors(MonitorRequest request, List<String> path) {
    if (path.size() != 2 && path.size() != 3) {
      return Replies.nothingHere();
    }
    return allowed(
        request,
        Map.of("POST", () -> starts.start(request, path.get(1), path.subList(2, path.size()))));
  }

  private MonitorResponse instances(MonitorRequest request, List<String> path) {
    if (path.size() == 1) {
      return allowed(
          request,
          Map.of("GET", () -> lookups.list(request), "DELETE", () -> verbs.purgeAll(request)));
    }
    String id = path.get(1);
    if (path.size() == 2) {
      return allowed(
          request,
          Map.of(
              "GET", () -> lookups.status(request, id), "DELETE", () -> verbs.purge(request, id)));
    }
    if (path.size() == 3 && Verbs.KNOWN.contains(path.get(2))) {
      return allowed(request, Map.of("POST", () -> verbs.apply(request, id, path.get(2))));
    }
    if (path.size() == 4 && path.get(2).equals(RAISE_EVENT)) {
      return allowed(request, Map.of("POST", () -> verbs.raiseEvent(request, id, path.get(3))));
    }
    return Replies.nothingHere();
  }

  private interface Operation {
    MonitorResponse run();
  }

  private static MonitorResponse allowed(
      MonitorRequest request, Map<String, Operation> operations) {
    Operation operation = operations.get(request.method());
    return operation == null ? Replies.notAllowed(operations.keySet()) : operation.run();
  }

  /** Decodes each segment by itself: a slash in an id is none between segments. */
  private static List<String> segments(String path) {
    List<String> segments = new ArrayList<>();
    for (String segment : path.substring(path.startsWith("/") ? 1 : 0).split("/", -1)) {
      String decoded = Percent.decode(segment);
      if (decoded.equals(".") || decoded.equals("..")) {
        throw new IllegalArgumentException("the path has '" + decoded + "'; leave it out");
      }
      segments.add(decoded);
    }
    return segments;
  }

  static MonitorResponse answer(MonitorAnswer answer, String id, MonitorResponse done) {
    return switch (answer) {
      case DONE, UNCHANGED -> done;
      case UNKNOWN -> Replies.unknown(id);
      case FINISHED -> Replies.refused(410, "instance " + id + " has ended");
      case ALIVE -> Replies.refused(409, "instance " + id + " has not ended");
      case FULL ->
          Replies.refused(
              429,
              "%d events of instance %s wait to be seen, as many as may"
                  .formatted(MonitorControl.MAX_UNSEEN_EVENTS, id));
    };
  }

  /** Collects types and settings. Not thread-safe; does no I/O. */
  public static final class Builder {
    private final MonitorControl control;
    private final Map<String, MonitorType<?>> types = new LinkedHashMap<>();
    private String baseUrl = "";
    private Duration longestWait = Duration.ofMinutes(5);

    private Builder(MonitorControl control) {
      this.control = Objects.requireNonNull(control, "control");
    }

    /**
     * Adds a type that may be started. Instances of others can be seen and controlled.
     *
     * @param type its definition
     * @return this builder
     * @throws IllegalArgumentException if there is one of its name
     */
    public Builder type(MonitorType<?> type) {
      if (types.putIfAbsent(type.name(), type) != null) {
        throw new IllegalArgumentException(
            "there are two monitor types of the name '%s'; name each by what it watches"
                .formatted(type.name()));
      }
      return this;
    }

    /**
     * Sets what comes before {@code /monitors} and {@code /instances} in the URIs of responses.
     *
     * @param url such as {@code https://shop.example/ops} or {@code /ops}; default none, so that
     *     URIs begin with {@code /instances}
     * @return this builder
     * @throws IllegalArgumentException if it is no URL and no path, or has a query, a fragment or a
     *     slash at its end
     */
    public Builder baseUrl(String url) {
      try {
        URI uri = new URI(url);
        boolean begins = uri.getScheme() == null ? url.startsWith("/") : uri.getHost() != null;
        if (begins && !url.endsWith("/") && uri.getQuery() == null && uri.getFragment() == null) {
          this.baseUrl = url;
          return this;
        }
      } catch (URISyntaxException e) {
        throw new IllegalArgumentException(refusal(url), e);
      }
      throw new IllegalArgumentException(refusal(url));
    }

    private static String refusal(String url) {
      return "baseUrl is '%s'; give a URL or a path, such as https://shop.example/ops or /ops"
          .formatted(OneLine.of(url));
    }

    /**
     * Sets how long a start may wait by {@code timeout}, and so hold a thread of the server.
     *
     * @param time 1 s to 1 day; default 5 minutes
     * @return this builder
     * @throws IllegalArgumentException if it is out of range
     */
    public Builder longestWait(Duration time) {
      if (time.compareTo(Duration.ofSeconds(1)) < 0 || time.compareTo(LONGEST_WAIT) > 0) {
        throw new IllegalArgumentException("longestWait is " + time + "; it must be 1 s to 1 day");
      }
      this.longestWait = time;
      return this;
    }

    /**
     * Builds it. Without a type nothing can be started by it.
     *
     * @return what handles requests
     */
    public MonitorHttp build() {
      return new MonitorHttp(this);
    }
  }
}
