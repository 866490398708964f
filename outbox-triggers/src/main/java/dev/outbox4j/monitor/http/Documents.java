package dev.outbox4j.monitor.http;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.outbox4j.monitor.HistoryEntry;
import dev.outbox4j.monitor.Json;
import dev.outbox4j.monitor.MonitorFailure;
import dev.outbox4j.monitor.MonitorInstance;
import dev.outbox4j.monitor.MonitorPage;
import dev.outbox4j.monitor.MonitorStatus;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** The bodies of responses. Values of instances are in them as they are on record, to the byte. */
final class Documents {
  private static final JsonFactory JSON = new JsonFactory();

  private Documents() {}

  private interface Content {
    void writeTo(JsonGenerator json) throws IOException;
  }

  private static String object(Content content) {
    StringWriter text = new StringWriter();
    try (JsonGenerator json = JSON.createGenerator(text)) {
      json.writeStartObject();
      content.writeTo(json);
      json.writeEndObject();
    } catch (IOException e) {
      throw new UncheckedIOException("a response could not be written", e);
    }
    return text.toString();
  }

  static String error(String text) {
    return object(json -> json.writeStringField("error", text));
  }

  static String links(String id, Links links) {
    return object(
        json -> {
          json.writeStringField("id", id);
          json.writeStringField("statusQueryGetUri", links.status(id));
          json.writeStringField("sendEventPostUri", links.event(id));
          json.writeStringField("terminatePostUri", links.verbForReason(id, MonitorHttp.TERMINATE));
          json.writeStringField("suspendPostUri", links.verbForReason(id, MonitorHttp.SUSPEND));
          json.writeStringField("resumePostUri", links.verbForReason(id, MonitorHttp.RESUME));
          json.writeStringField("restartPostUri", links.verbForReason(id, MonitorHttp.RESTART));
          json.writeStringField("wakePostUri", links.verb(id, MonitorHttp.WAKE));
          json.writeStringField("purgeHistoryDeleteUri", links.status(id));
        });
  }

  static String instance(
      MonitorInstance instance, boolean showsInput, Optional<List<HistoryEntry>> history) {
    return object(
        json -> {
          writeFields(json, instance, showsInput);
          if (history.isPresent()) {
            json.writeArrayFieldStart("historyEvents");
            for (HistoryEntry entry : history.get()) {
              write(json, entry);
            }
            json.writeEndArray();
          }
        });
  }

  static String page(MonitorPage page, boolean showsInput) {
    return object(
        json -> {
          json.writeArrayFieldStart("instances");
          for (MonitorInstance instance : page.instances()) {
            json.writeStartObject();
            writeFields(json, instance, showsInput);
            json.writeEndObject();
          }
          json.writeEndArray();
          write(json, "continuationToken", page.continuation());
        });
  }

  static String purged(int count, boolean more) {
    return object(
        json -> {
          json.writeNumberField("instancesDeleted", count);
          json.writeBooleanField("more", more);
        });
  }

  private static void writeFields(JsonGenerator json, MonitorInstance instance, boolean showsInput)
      throws IOException {
    json.writeStringField("name", instance.type());
    json.writeStringField("instanceId", instance.id());
    json.writeNumberField("execution", instance.execution());
    json.writeStringField("runtimeStatus", name(instance.status()));
    write(json, "outcome", instance.outcome().map(Enum::name));
    json.writeNumberField("iterations", instance.iterations());
    json.writeNumberField("attempts", instance.attempts());
    if (showsInput) {
      writeValue(json, "input", instance.input());
    }
    writeValue(json, "customStatus", instance.customStatus());
    writeValue(json, "output", instance.output());
    if (instance.failure().isPresent()) {
      write(json, instance.failure().get());
    }
    write(json, "lastError", instance.lastError());
    write(json, "parent", instance.parent());
    json.writeArrayFieldStart("waitsFor");
    for (String name : instance.waitsFor()) {
      json.writeString(name);
    }
    json.writeEndArray();
    writeTime(json, "createdTime", Optional.of(instance.createdAt()));
    writeTime(json, "lastUpdatedTime", Optional.of(instance.updatedAt()));
    writeTime(json, "startedTime", instance.startedAt());
    writeTime(json, "endedTime", instance.endedAt());
    writeTime(json, "expiresTime", instance.expiresAt());
    writeTime(json, "dueTime", instance.dueAt());
  }

  /** The stack trace is for those who have the log, and not for every caller. */
  private static void write(JsonGenerator json, MonitorFailure failure) throws IOException {
    json.writeObjectFieldStart("failure");
    write(json, "type", failure.type());
    json.writeStringField("message", failure.message());
    json.writeNumberField("attempts", failure.attempts());
    json.writeEndObject();
  }

  private static void write(JsonGenerator json, HistoryEntry entry) throws IOException {
    json.writeStartObject();
    json.writeNumberField("id", entry.id());
    json.writeNumberField("execution", entry.execution());
    json.writeStringField("kind", entry.kind().name());
    json.writeNumberField("iteration", entry.iteration());
    write(json, "name", entry.name());
    if (entry.kind() == HistoryEntry.Kind.EVENT) {
      writeValue(json, "payload", entry.detail().map(Json::of));
    } else {
      write(json, "detail", entry.detail());
    }
    writeTime(json, "time", Optional.of(entry.at()));
    json.writeEndObject();
  }

  /** {@return such as Running} */
  private static String name(MonitorStatus status) {
    return status.name().charAt(0) + status.name().substring(1).toLowerCase(Locale.ROOT);
  }

  private static void write(JsonGenerator json, String field, Optional<String> text)
      throws IOException {
    if (text.isPresent()) {
      json.writeStringField(field, text.get());
    }
  }

  private static void writeTime(JsonGenerator json, String field, Optional<Instant> time)
      throws IOException {
    write(json, field, time.map(Instant::toString));
  }

  private static void writeValue(JsonGenerator json, String field, Optional<Json> value)
      throws IOException {
    if (value.isPresent()) {
      json.writeFieldName(field);
      json.writeRawValue(value.get().text());
    }
  }
}
