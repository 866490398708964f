package dev.outbox4j.examples.chaos;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** What a process last said in its log, after each of some words. Reads nothing twice. */
final class LogTail {
  private final Path log;
  private final List<String> words;
  private final Map<String, String> said = new HashMap<>();
  private long position;

  LogTail(Path log, String... words) {
    this.log = log;
    this.words = List.of(words);
  }

  synchronized Optional<String> lastAfter(String word) throws IOException {
    read();
    return Optional.ofNullable(said.get(word));
  }

  private void read() throws IOException {
    try (SeekableByteChannel channel = Files.newByteChannel(log)) {
      channel.position(position);
      ByteBuffer bytes = ByteBuffer.allocate((int) (channel.size() - position));
      while (bytes.hasRemaining() && channel.read(bytes) >= 0) {
        // until all is there
      }
      String text = new String(bytes.array(), 0, wholeLines(bytes), StandardCharsets.UTF_8);
      position += wholeLines(bytes);
      text.lines().forEach(this::note);
    }
  }

  private static int wholeLines(ByteBuffer bytes) {
    int end = bytes.position();
    while (end > 0 && bytes.get(end - 1) != '\n') {
      end--;
    }
    return end;
  }

  private void note(String line) {
    for (String word : words) {
      int place = line.indexOf(word);
      if (place >= 0) {
        said.put(word, line.substring(place + word.length()));
      }
    }
  }
}
