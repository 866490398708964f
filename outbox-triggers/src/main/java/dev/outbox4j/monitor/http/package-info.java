/**
 * Monitors by HTTP, without an HTTP library: {@link dev.outbox4j.monitor.http.MonitorHttp} makes a
 * response of a request, and a few lines adapt it to a server. It needs {@code
 * com.fasterxml.jackson.core:jackson-core}.
 */
@NullMarked
package dev.outbox4j.monitor.http;

import org.jspecify.annotations.NullMarked;
