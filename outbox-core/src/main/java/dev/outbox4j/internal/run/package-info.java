/** Runs handlers, and makes of their ends what becomes of the row. Owned by the workers. */
@NullMarked
package dev.outbox4j.internal.run;

import org.jspecify.annotations.NullMarked;
