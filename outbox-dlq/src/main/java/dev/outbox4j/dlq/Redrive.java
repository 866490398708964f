package dev.outbox4j.dlq;

import dev.outbox4j.spi.PayloadCodec;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;

/** How dead letters are put back, and by whom. Immutable. */
public final class Redrive {
  /** How many letters go back in a second unless another rate is given: {@value}. */
  public static final int DEFAULT_PER_SECOND = 100;

  private static final int MOST_PER_SECOND = 100_000;

  private final String by;
  private final @Nullable String note;
  private final int perSecond;
  private final long most;
  private final List<DeadLetterCheck> checks;
  private final @Nullable Callable<?> probe;

  private Redrive(
      String by,
      @Nullable String note,
      int perSecond,
      long most,
      List<DeadLetterCheck> checks,
      @Nullable Callable<?> probe) {
    this.by = by;
    this.note = note;
    this.perSecond = perSecond;
    this.most = most;
    this.checks = List.copyOf(checks);
    this.probe = probe;
  }

  /**
   * Says who redrives.
   *
   * @param by a person or a program; not blank, at most 255 bytes in UTF-8
   * @return a redrive of {@value #DEFAULT_PER_SECOND} letters a second, without checks
   * @throws IllegalArgumentException if the text is blank or too long
   */
  public static Redrive by(String by) {
    return new Redrive(
        Words.requireBy(by), null, DEFAULT_PER_SECOND, Long.MAX_VALUE, List.of(), null);
  }

  /**
   * Says why.
   *
   * @param note not blank, at most 2,000 bytes in UTF-8
   * @return the same with the note
   * @throws IllegalArgumentException if the text is blank or too long
   */
  public Redrive note(String note) {
    return new Redrive(by, Words.requireNote("note", note), perSecond, most, checks, probe);
  }

  /**
   * Sets the rate of this run; two runs at once have one each. Checks are called at ten times the
   * rate at most.
   *
   * @param perSecond how many letters go back in a second, 1 to 100,000
   * @return the same at that rate
   * @throws IllegalArgumentException if it is out of range
   */
  public Redrive perSecond(int perSecond) {
    if (perSecond < 1 || perSecond > MOST_PER_SECOND) {
      throw new IllegalArgumentException(
          "perSecond is " + perSecond + "; it must be 1 to " + MOST_PER_SECOND);
    }
    return new Redrive(by, note, perSecond, most, checks, probe);
  }

  /**
   * Sets how many letters go back at most.
   *
   * @param most at least 1; no limit if this is not called
   * @return the same with the limit
   * @throws IllegalArgumentException if it is less than 1
   */
  public Redrive atMost(long most) {
    if (most < 1) {
      throw new IllegalArgumentException("atMost is " + most + "; it must be 1 or more");
    }
    return new Redrive(by, note, perSecond, most, checks, probe);
  }

  /**
   * Adds a check. A letter that one refuses stays where it is, and says why.
   *
   * @param check the check
   * @return the same with the check
   */
  public Redrive checking(DeadLetterCheck check) {
    List<DeadLetterCheck> all = new ArrayList<>(checks);
    all.add(Objects.requireNonNull(check, "check"));
    return new Redrive(by, note, perSecond, most, all, probe);
  }

  /**
   * Adds a check that the payload can be decoded.
   *
   * @param codec the subscriber's codec
   * @param type what the handler is registered for
   * @return the same with the check
   */
  public Redrive decoding(PayloadCodec codec, Type type) {
    Objects.requireNonNull(codec, "codec");
    Objects.requireNonNull(type, "type");
    return checking(
        letter -> {
          letter.decode(codec, type);
          return Optional.empty();
        });
  }

  /**
   * Sets what is called once before the first letter, to see whether what the handlers depend on
   * works again. If it throws, nothing is redriven.
   *
   * @param probe its result does not matter
   * @return the same with the probe
   */
  public Redrive probing(Callable<?> probe) {
    return new Redrive(by, note, perSecond, most, checks, Objects.requireNonNull(probe, "probe"));
  }

  String who() {
    return by;
  }

  Optional<String> note() {
    return Optional.ofNullable(note);
  }

  int perSecond() {
    return perSecond;
  }

  long most() {
    return most;
  }

  List<DeadLetterCheck> checks() {
    return checks;
  }

  Optional<Callable<?>> probe() {
    return Optional.ofNullable(probe);
  }
}
