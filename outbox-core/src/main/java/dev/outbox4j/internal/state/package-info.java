/**
 * What the steps of the engine share: rows in flight, the room for them, connections, health,
 * events.
 */
@NullMarked
package dev.outbox4j.internal.state;

import org.jspecify.annotations.NullMarked;
