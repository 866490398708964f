package dev.outbox4j.lock;

import java.time.Instant;
import java.util.Optional;

/**
 * A lock as it is on record. Instants are the server's.
 *
 * @param name its name, with its suffix
 * @param token the token of who has it, or had it last
 * @param holder who has it; empty if it is free
 * @param heldUntil when its lease ends unless it is renewed; empty if it is free
 * @param acquired when it was acquired last
 * @param renewed when it was renewed last, or acquired
 */
public record LockStatus(
    String name,
    long token,
    Optional<String> holder,
    Optional<Instant> heldUntil,
    Instant acquired,
    Instant renewed) {}
