/** The engine. Not API: anything here may change in any release. */
@NullMarked
package dev.outbox4j.internal;

import org.jspecify.annotations.NullMarked;
