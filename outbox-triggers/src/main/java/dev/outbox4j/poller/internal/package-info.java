/** What pollers are made of. Not for use outside of the library. */
@NullMarked
package dev.outbox4j.poller.internal;

import org.jspecify.annotations.NullMarked;
