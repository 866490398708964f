/**
 * Bodies as JSON, by Jackson 2. Needs {@code com.fasterxml.jackson.core:jackson-databind}, and
 * {@code jackson-datatype-jsr310} for dates.
 */
@NullMarked
package dev.outbox4j.codec.jackson2;

import org.jspecify.annotations.NullMarked;
