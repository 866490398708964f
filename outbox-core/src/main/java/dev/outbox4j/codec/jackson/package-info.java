/**
 * JSON payloads by Jackson: {@link dev.outbox4j.codec.jackson.JacksonCodec}. The only package that
 * needs Jackson on the class path.
 */
@NullMarked
package dev.outbox4j.codec.jackson;

import org.jspecify.annotations.NullMarked;
