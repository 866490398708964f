/** How messages are published. Not API: anything here may change. */
@NullMarked
package dev.outbox4j.postgres.internal.publish;

import org.jspecify.annotations.NullMarked;
