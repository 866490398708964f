package dev.outbox4j.test.spring.app;

import static org.assertj.core.api.Assertions.assertThat;

import dev.outbox4j.OutboxMessage;
import dev.outbox4j.spring.OutboxHandler;
import dev.outbox4j.spring.OutboxSubscriberCustomizer;
import dev.outbox4j.spring.OutboxTemplate;
import dev.outbox4j.test.spring.OutboxTest;
import dev.outbox4j.test.spring.TestOutbox;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** A drain's handlers are on the calling thread, whatever the service says of threads. */
@OutboxTest
class OutboxSliceThreadsIT {
  @Autowired TestOutbox outbox;
  @Autowired OutboxTemplate template;
  @Autowired PlatformTransactionManager transactions;
  @Autowired Threads threads;

  @TestConfiguration(proxyBeanMethods = false)
  static class Threads {
    Thread handled;

    @Bean
    OutboxSubscriberCustomizer threadsOfEachQueue() {
      return (queue, subscriber) -> {
        if (queue.equals("own")) {
          subscriber.executor(task -> new Thread(task).start()).workers(8);
        } else if (queue.equals("virtual") && Runtime.version().feature() >= 21) {
          subscriber.virtualThreads();
        }
      };
    }

    @OutboxHandler(queue = "virtual", type = "t")
    void virtual(String body) {
      handled = Thread.currentThread();
    }

    @OutboxHandler(queue = "own", type = "t")
    void own(String body) {
      handled = Thread.currentThread();
    }
  }

  @Test
  void ofAnExecutor() {
    drains("own");
  }

  @EnabledForJreRange(min = JRE.JAVA_21)
  @Test
  void ofVirtualThreads() {
    drains("virtual");
  }

  private void drains(String queue) {
    new TransactionTemplate(transactions)
        .executeWithoutResult(
            status -> template.publish(OutboxMessage.to(queue).type("t").body("x").build()));
    assertThat(outbox.drain(queue).requireNoFailures().runs()).isEqualTo(1);
    assertThat(threads.handled).isEqualTo(Thread.currentThread());
  }
}
