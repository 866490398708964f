/**
 * Publishers as results of handlers. The only package that knows Reactive Streams, which may be
 * absent. Owned by whoever subscribes: a publisher signals on its own threads.
 */
@NullMarked
package dev.outbox4j.internal.reactive;

import org.jspecify.annotations.NullMarked;
