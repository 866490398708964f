/** How timers work. Not for use by others: what is here changes without notice. */
@NullMarked
package dev.outbox4j.timer.internal;

import org.jspecify.annotations.NullMarked;
