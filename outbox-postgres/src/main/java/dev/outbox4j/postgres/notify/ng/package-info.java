/**
 * LISTEN through pgjdbc-ng: {@link dev.outbox4j.postgres.notify.ng.PgjdbcNgListen}. Needs {@code
 * com.impossibl.pgjdbc-ng:pgjdbc-ng}.
 */
@NullMarked
package dev.outbox4j.postgres.notify.ng;

import org.jspecify.annotations.NullMarked;
