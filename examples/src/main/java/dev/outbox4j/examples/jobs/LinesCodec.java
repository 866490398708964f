package dev.outbox4j.examples.jobs;

import dev.outbox4j.Payload;
import dev.outbox4j.spi.PayloadCodec;
import dev.outbox4j.spi.UndecodableException;
import java.lang.reflect.Type;
import java.nio.charset.CharacterCodingException;
import java.util.List;
import java.util.Map;

/** What an older version of the service wrote: a line with the user, and one with the hash. */
final class LinesCodec implements PayloadCodec {
  static final String CONTENT_TYPE = "text/x-taste-lines";

  @Override
  public String contentType() {
    return CONTENT_TYPE;
  }

  @Override
  public Payload encode(Object body) {
    TasteAnalysis job = (TasteAnalysis) body;
    return Payload.ofText(job.user() + "\n" + job.contentHash() + "\n");
  }

  @Override
  public Object decode(Payload payload, Map<String, String> headers, Type type) {
    List<String> lines;
    try {
      lines = payload.text().lines().toList();
    } catch (CharacterCodingException e) {
      throw new UndecodableException("it is not UTF-8");
    }
    if (lines.size() != 2) {
      throw new UndecodableException("it has " + lines.size() + " lines instead of 2");
    }
    return new TasteAnalysis(lines.get(0), lines.get(1));
  }
}
