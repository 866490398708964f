/**
 * Watches the open issues of repositories, and tells once when there are too many; made to be
 * copied. {@link dev.outbox4j.examples.monitor.OpenIssuesCheck} looks, {@link
 * dev.outbox4j.examples.monitor.MonitorRoutes} adapts monitors to an HTTP server, {@link
 * dev.outbox4j.examples.monitor.IssueWatcher} puts all together, and {@link
 * dev.outbox4j.examples.monitor.IssuesExample} runs it.
 */
@NullMarked
package dev.outbox4j.examples.monitor;

import org.jspecify.annotations.NullMarked;
