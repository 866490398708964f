/** Bodies as JSON, by Jackson 3. Needs {@code tools.jackson.core:jackson-databind}. */
@NullMarked
package dev.outbox4j.codec.jackson3;

import org.jspecify.annotations.NullMarked;
