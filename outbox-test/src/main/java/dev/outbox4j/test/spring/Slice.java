package dev.outbox4j.test.spring;

import dev.outbox4j.spring.OutboxHandler;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.boot.context.TypeExcludeFilter;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.ComponentScan;
import org.springframework.context.annotation.TypeFilterUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.core.type.classreading.MetadataReader;
import org.springframework.core.type.classreading.MetadataReaderFactory;
import org.springframework.core.type.filter.TypeFilter;

/** Which components a slice includes. Equal for tests that may share a context. */
record Slice(Set<ComponentScan.Filter> includes, Set<ComponentScan.Filter> excludes) {

  static Slice of(OutboxTest test) {
    return new Slice(Set.of(test.includeFilters()), Set.of(test.excludeFilters()));
  }

  /** Spring Boot's own base class of such filters has another package in each of its lines. */
  TypeExcludeFilter filter(ConfigurableApplicationContext context) {
    return new Components(this, filters(includes, context), filters(excludes, context));
  }

  private static List<TypeFilter> filters(
      Set<ComponentScan.Filter> annotations, ConfigurableApplicationContext context) {
    List<TypeFilter> filters = new ArrayList<>();
    for (ComponentScan.Filter annotation : annotations) {
      filters.addAll(
          TypeFilterUtils.createTypeFiltersFor(
              AnnotationUtils.getAnnotationAttributes(null, annotation),
              context.getEnvironment(),
              context,
              (BeanDefinitionRegistry) context.getBeanFactory()));
    }
    return filters;
  }

  /** Excludes what is not part of the slice. */
  private static final class Components extends TypeExcludeFilter {
    private final Slice slice;
    private final List<TypeFilter> includes;
    private final List<TypeFilter> excludes;

    Components(Slice slice, List<TypeFilter> includes, List<TypeFilter> excludes) {
      this.slice = slice;
      this.includes = includes;
      this.excludes = excludes;
    }

    @Override
    public boolean match(MetadataReader reader, MetadataReaderFactory readers) throws IOException {
      return anyOf(excludes, reader, readers)
          || !(handles(reader, readers) || anyOf(includes, reader, readers));
    }

    private static boolean anyOf(
        List<TypeFilter> filters, MetadataReader reader, MetadataReaderFactory readers)
        throws IOException {
      for (TypeFilter filter : filters) {
        if (filter.match(reader, readers)) {
          return true;
        }
      }
      return false;
    }

    private static boolean handles(MetadataReader reader, MetadataReaderFactory readers)
        throws IOException {
      if (reader.getAnnotationMetadata().hasAnnotatedMethods(OutboxHandler.class.getName())) {
        return true;
      }
      String parent = reader.getClassMetadata().getSuperClassName();
      return parent != null
          && !parent.startsWith("java.")
          && handles(readers.getMetadataReader(parent), readers);
    }

    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof Components components && slice.equals(components.slice);
    }

    @Override
    public int hashCode() {
      return Objects.hash(slice);
    }
  }
}
