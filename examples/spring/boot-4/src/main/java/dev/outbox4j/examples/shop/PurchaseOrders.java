package dev.outbox4j.examples.shop;

import org.springframework.data.jpa.repository.JpaRepository;

interface PurchaseOrders extends JpaRepository<PurchaseOrder, String> {}
