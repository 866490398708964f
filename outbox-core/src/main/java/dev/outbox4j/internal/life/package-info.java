/** Start, stop, and the parts put together. */
@NullMarked
package dev.outbox4j.internal.life;

import org.jspecify.annotations.NullMarked;
