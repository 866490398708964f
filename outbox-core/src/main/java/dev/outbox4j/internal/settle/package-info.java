/** Writes what became of rows, in groups. Owned by the completer. */
@NullMarked
package dev.outbox4j.internal.settle;

import org.jspecify.annotations.NullMarked;
