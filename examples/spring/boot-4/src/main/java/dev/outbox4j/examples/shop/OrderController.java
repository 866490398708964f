package dev.outbox4j.examples.shop;

import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

@RestController
class OrderController {
  private final OrderService service;
  private final PurchaseOrders orders;

  OrderController(OrderService service, PurchaseOrders orders) {
    this.service = service;
    this.orders = orders;
  }

  @PutMapping("/orders/{id}")
  @ResponseStatus(HttpStatus.ACCEPTED)
  void place(@PathVariable String id, @RequestParam long cents) {
    service.place(id, cents);
  }

  @GetMapping("/orders/{id}")
  ResponseEntity<PurchaseOrder> show(@PathVariable String id) {
    return ResponseEntity.of(orders.findById(id));
  }
}
