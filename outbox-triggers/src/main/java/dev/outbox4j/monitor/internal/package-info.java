/** How monitors work. Not for users. */
@NullMarked
package dev.outbox4j.monitor.internal;

import org.jspecify.annotations.NullMarked;
