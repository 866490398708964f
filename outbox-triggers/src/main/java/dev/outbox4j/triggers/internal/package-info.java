/** What the triggers have in common. */
@NullMarked
package dev.outbox4j.triggers.internal;

import org.jspecify.annotations.NullMarked;
