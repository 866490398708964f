package dev.outbox4j.monitor.http;

/**
 * Where instances are.
 *
 * @param base what comes before the paths of {@link MonitorHttp}
 */
record Links(String base) {

  String status(String id) {
    return base + "/instances/" + Percent.encode(id);
  }

  /** {@return where something is done to the instance} */
  String verb(String id, String verb) {
    return status(id) + "/" + verb;
  }

  /** {@return where it is done for a reason, which the caller puts in} */
  String verbForReason(String id, String verb) {
    return verb(id, verb) + "?reason={text}";
  }

  /** {@return where an event is raised, whose name the caller puts in} */
  String event(String id) {
    return verb(id, MonitorHttp.RAISE_EVENT) + "/{eventName}";
  }
}
