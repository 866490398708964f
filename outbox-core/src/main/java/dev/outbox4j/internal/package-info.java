/**
 * What the parts of the engine have in common: loops, threads, waits, texts. Not API: anything here
 * and below may change in any release.
 */
@NullMarked
package dev.outbox4j.internal;

import org.jspecify.annotations.NullMarked;
