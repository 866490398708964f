package dev.outbox4j.examples.quickstart;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Places orders over HTTP from several threads, as clients would. */
final class LoadDriver {
  private static final int THREADS = 8;
  private static final int CREATED = 201;
  private static final int PAYMENT_REQUIRED = 402;
  private static final int SHOWN_CHARACTERS = 200;
  private static final Duration ANSWER_WITHIN = Duration.ofSeconds(30);

  private final HttpClient client =
      HttpClient.newBuilder()
          .version(HttpClient.Version.HTTP_1_1)
          .connectTimeout(Duration.ofSeconds(10))
          .build();
  private final URI orders;
  private final int count;
  private final Ledger ledger;
  private final AtomicInteger next = new AtomicInteger();
  private final List<Thread> threads = new ArrayList<>();

  LoadDriver(String url, int count, Ledger ledger) {
    this.orders = URI.create(url + "/orders");
    this.count = count;
    this.ledger = ledger;
  }

  void start() {
    for (int i = 1; i <= THREADS; i++) {
      Thread thread = new Thread(this::placeAll, "client-" + i);
      thread.setDaemon(true);
      thread.start();
      threads.add(thread);
    }
  }

  boolean done() {
    return threads.stream().noneMatch(Thread::isAlive);
  }

  private void placeAll() {
    for (int number = next.getAndIncrement(); number < count; number = next.getAndIncrement()) {
      try {
        place(PlannedOrder.ofNumber(number));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return;
      }
    }
  }

  private void place(PlannedOrder order) throws InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(orders)
            .timeout(ANSWER_WITHIN)
            .header("content-type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(order.json()))
            .build();
    HttpResponse<String> answer;
    try {
      answer = client.send(request, HttpResponse.BodyHandlers.ofString());
    } catch (IOException e) {
      ledger.unexpected("%s order %s: no answer: %s".formatted(order.kind(), order.id(), e));
      return;
    }
    boolean toRollBack = order.kind() == OrderKind.ROLLED_BACK;
    if (answer.statusCode() == CREATED && !toRollBack) {
      ledger.committed(order);
    } else if (answer.statusCode() == PAYMENT_REQUIRED && toRollBack) {
      ledger.rolledBack(order);
    } else {
      ledger.unexpected(
          "%s order %s: HTTP %d %s"
              .formatted(order.kind(), order.id(), answer.statusCode(), beginning(answer.body())));
    }
  }

  private static String beginning(String text) {
    return text.length() <= SHOWN_CHARACTERS ? text : text.substring(0, SHOWN_CHARACTERS) + "…";
  }
}
