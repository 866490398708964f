package dev.outbox4j.postgres;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTag;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** What is optional is needed by those alone who use it. */
@AnalyzeClasses(packages = "dev.outbox4j.postgres", importOptions = DoNotIncludeTests.class)
@ArchTag("once")
class PostgresArchitectureTest {

  @ArchTest
  static final ArchRule jooq_is_seen_in_one_package =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.outbox4j.postgres.jooq..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.jooq..");

  @ArchTest
  static final ArchRule micrometer_is_seen_in_one_package =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.outbox4j.postgres.metrics..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.micrometer..");

  @ArchTest
  static final ArchRule r2dbc_is_seen_by_the_reactive_publisher_and_two_packages =
      noClasses()
          .that()
          .resideOutsideOfPackages(
              "dev.outbox4j.postgres.notify.r2dbc..", "dev.outbox4j.postgres.r2dbc..")
          .and()
          .haveSimpleNameNotStartingWith("R2dbcOutboxPublisher")
          .and()
          .doNotHaveSimpleName("ReactiveOutboxPublisher")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("io.r2dbc..", "reactor..", "org.reactivestreams..");

  @ArchTest
  static final ArchRule pgjdbc_ng_is_seen_in_one_package =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.outbox4j.postgres.notify.ng..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("com.impossibl..");
}
