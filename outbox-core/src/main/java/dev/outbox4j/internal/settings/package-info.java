/** What a subscriber was built with. Immutable. */
@NullMarked
package dev.outbox4j.internal.settings;

import org.jspecify.annotations.NullMarked;
