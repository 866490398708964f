package dev.outbox4j;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.methods;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTag;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import java.util.stream.Stream;

/**
 * What the layout promises: the core knows no database, and the API shows nothing of the inside.
 */
@AnalyzeClasses(packages = "dev.outbox4j", importOptions = DoNotIncludeTests.class)
@ArchTag("once")
class ArchitectureTest {

  @ArchTest
  static final ArchRule core_knows_no_database =
      noClasses()
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "java.sql..",
              "javax.sql..",
              "org.postgresql..",
              "com.impossibl..",
              "io.r2dbc..",
              "org.jooq..",
              "com.zaxxer..");

  @ArchTest
  static final ArchRule micrometer_is_seen_in_one_package =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.outbox4j.metrics..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.micrometer..");

  @ArchTest
  static final ArchRule resilience4j_is_seen_in_one_package =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.outbox4j.resilience4j..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("io.github.resilience4j..");

  @ArchTest
  static final ArchRule reactive_streams_are_seen_in_one_package =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.outbox4j.internal.reactive..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.reactivestreams..");

  @ArchTest
  static final ArchRule jackson_2_is_seen_in_one_package =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.outbox4j.codec.jackson2..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("com.fasterxml..");

  @ArchTest
  static final ArchRule jackson_3_is_seen_in_one_package =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.outbox4j.codec.jackson3..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("tools.jackson..");

  @ArchTest
  static final ArchRule public_signatures_show_nothing_of_the_inside =
      methods()
          .that()
          .areDeclaredInClassesThat()
          .resideOutsideOfPackage("dev.outbox4j.internal..")
          .and()
          .arePublic()
          .and()
          .areDeclaredInClassesThat()
          .arePublic()
          .should(showNothingOfTheInside());

  @ArchTest
  static final ArchRule outcomes_are_taken_apart_in_one_place =
      classes()
          .that(
              new DescribedPredicate<JavaClass>("are outcome records") {
                @Override
                public boolean test(JavaClass type) {
                  return type.getName().startsWith("dev.outbox4j.Outcome$");
                }
              })
          .should()
          .onlyBeAccessed()
          .byClassesThat()
          .haveNameMatching("dev\\.outbox4j\\.(Outcome(\\$.*)?|internal\\.run\\.OutcomeApplier)");

  @ArchTest
  static final ArchRule the_engine_has_walls =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("common")
          .definedBy("dev.outbox4j.internal")
          .layer("settings")
          .definedBy("dev.outbox4j.internal.settings")
          .layer("state")
          .definedBy("dev.outbox4j.internal.state")
          .layer("settle")
          .definedBy("dev.outbox4j.internal.settle")
          .layer("run")
          .definedBy("dev.outbox4j.internal.run")
          .layer("lease")
          .definedBy("dev.outbox4j.internal.lease")
          .layer("claim")
          .definedBy("dev.outbox4j.internal.claim")
          .layer("order")
          .definedBy("dev.outbox4j.internal.order")
          .layer("life")
          .definedBy("dev.outbox4j.internal.life")
          .whereLayer("life")
          .mayNotBeAccessedByAnyLayer()
          .whereLayer("order")
          .mayOnlyBeAccessedByLayers("life")
          .whereLayer("lease")
          .mayOnlyBeAccessedByLayers("order", "life")
          .whereLayer("claim")
          .mayOnlyBeAccessedByLayers("order", "life")
          .whereLayer("run")
          .mayOnlyBeAccessedByLayers("lease", "claim", "order", "life")
          .whereLayer("settle")
          .mayOnlyBeAccessedByLayers("run", "lease", "claim", "order", "life")
          .whereLayer("state")
          .mayOnlyBeAccessedByLayers("settle", "run", "lease", "claim", "order", "life")
          .whereLayer("settings")
          .mayOnlyBeAccessedByLayers("settle", "run", "lease", "claim", "order", "life");

  private static ArchCondition<JavaMethod> showNothingOfTheInside() {
    return new ArchCondition<>("show nothing of dev.outbox4j.internal") {
      @Override
      public void check(JavaMethod method, ConditionEvents events) {
        boolean shows =
            Stream.concat(
                    Stream.of(method.getRawReturnType()), method.getRawParameterTypes().stream())
                .anyMatch(type -> type.getPackageName().startsWith("dev.outbox4j.internal"));
        if (shows) {
          events.add(SimpleConditionEvent.violated(method, method.getFullName()));
        }
      }
    };
  }
}
