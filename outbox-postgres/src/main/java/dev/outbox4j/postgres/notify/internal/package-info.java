/** What the LISTEN sources share. Not API: anything here may change in any release. */
@NullMarked
package dev.outbox4j.postgres.notify.internal;

import org.jspecify.annotations.NullMarked;
