package dev.outbox4j.test.spring.app;

import static org.awaitility.Awaitility.await;

import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import org.junit.jupiter.api.RepeatedTest;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.test.annotation.DirtiesContext;

/**
 * A subscriber that runs sleeps from one test to the next; only a notification wakes it in time.
 */
@OutboxTest(
    autoStart = true,
    properties = {"outbox4j.subscriber.poll-min=1m", "outbox4j.subscriber.poll-max=1h"})
@DirtiesContext // closed while the server still runs
class OutboxSleepersIT {
  @Autowired Mail mail;
  @Autowired TestOutbox outbox;
  @Autowired JdbcTemplate jdbc;

  @RepeatedTest(2) // the second finds asleep whom the first has left so
  void isNotForgottenByTheNextTest() {
    await().until(this::subscriberSleeps);
    mail.post("a");
    outbox.awaitEmpty("mail");
    await().until(this::subscriberSleeps);
  }

  private boolean subscriberSleeps() {
    return jdbc.queryForObject(
        "select exists (select from outbox_sleepers where queue = 'mail'"
            + " and wake_at > clock_timestamp() + interval '20 s')",
        Boolean.class);
  }
}
