package dev.outbox4j.test;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** What is optional is needed by those alone who use it. */
@AnalyzeClasses(packages = "dev.outbox4j.test", importOptions = DoNotIncludeTests.class)
class OptionalDependenciesTest {

  @ArchTest
  static final ArchRule junit_is_seen_by_the_extension_alone =
      noClasses()
          .that()
          .doNotHaveSimpleName("OutboxPostgres")
          .and()
          .resideOutsideOfPackage("dev.outbox4j.test.spring")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.junit..");

  @ArchTest
  static final ArchRule the_embedded_server_is_seen_in_one_class =
      noClasses()
          .that()
          .doNotHaveSimpleName("EmbeddedServer")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.zonky..");

  @ArchTest
  static final ArchRule spring_is_seen_by_its_package_alone =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.outbox4j.test.spring")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("org.springframework..", "dev.outbox4j.spring..");

  @ArchTest
  static final ArchRule the_store_needs_the_core_alone =
      noClasses()
          .that()
          .resideInAPackage("dev.outbox4j.test.internal")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("dev.outbox4j.postgres..", "dev.outbox4j.test", "java.sql..");
}
