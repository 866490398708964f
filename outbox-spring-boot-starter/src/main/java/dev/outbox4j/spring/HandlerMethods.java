package dev.outbox4j.spring;

import dev.outbox4j.OutboxException;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.aop.scope.ScopedProxyUtils;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.MethodIntrospector.MetadataLookup;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.annotation.AnnotationUtils;
import org.springframework.core.type.classreading.SimpleMetadataReaderFactory;
import org.springframework.util.ClassUtils;

/** Finds the methods that handle messages on the beans of a context. */
final class HandlerMethods {
  private static final Logger log = LoggerFactory.getLogger(HandlerMethods.class);

  private final ConfigurableListableBeanFactory beans;
  private final Map<String, List<HandlerMethod>> found = new TreeMap<>();

  private HandlerMethods(ConfigurableListableBeanFactory beans) {
    this.beans = beans;
  }

  /** Returns them by queue, in the order of the queues' names. */
  static Map<String, List<HandlerMethod>> of(ConfigurableListableBeanFactory beans) {
    HandlerMethods methods = new HandlerMethods(beans);
    for (String name : beans.getBeanNamesForType(Object.class)) {
      if (!ScopedProxyUtils.isScopedTarget(name)) {
        methods.addAllOf(name);
      }
    }
    return methods.found;
  }

  private void addAllOf(String name) {
    Class<?> beanClass = classOf(name);
    if (beanClass != null
        && Proxy.isProxyClass(beanClass)) { // made by hand, so nobody said of what
      beanClass = AopUtils.getTargetClass(beans.getBean(name));
    }
    if (beanClass == null || !AnnotationUtils.isCandidateClass(beanClass, OutboxHandler.class)) {
      return;
    }
    Class<?> declaring = beanClass;
    handlersOf(name, beanClass).forEach((method, handler) -> add(name, declaring, method, handler));
  }

  private @Nullable Class<?> classOf(String name) {
    try {
      return AutoProxyUtils.determineTargetClass(beans, name);
    } catch (RuntimeException | LinkageError unknown) {
      passBy(name, unknown);
      return null;
    }
  }

  /** A lazy bean of a library that is not all there cannot be looked at, and has no handler. */
  private Map<Method, OutboxHandler> handlersOf(String name, Class<?> beanClass) {
    MetadataLookup<@Nullable OutboxHandler> lookup =
        method -> AnnotatedElementUtils.findMergedAnnotation(method, OutboxHandler.class);
    try {
      return MethodIntrospector.selectMethods(beanClass, lookup);
    } catch (RuntimeException | LinkageError unknown) {
      requireNoHandler(beanClass, unknown);
      passBy(name, unknown);
      return Map.of();
    }
  }

  /** Reads the class file, since its methods cannot be had: a handler must not go unnoticed. */
  private void requireNoHandler(Class<?> beanClass, Throwable unknown) {
    boolean handles;
    try {
      handles =
          new SimpleMetadataReaderFactory(beans.getBeanClassLoader())
              .getMetadataReader(beanClass.getName())
              .getAnnotationMetadata()
              .hasAnnotatedMethods(OutboxHandler.class.getName());
    } catch (IOException | RuntimeException noClassFile) {
      log.warn(
          "{} cannot be looked at for methods with @OutboxHandler; if it has one, that gets no message: {}",
          beanClass.getName(),
          NestedExceptionUtils.getMostSpecificCause(unknown).toString());
      log.debug("Its class file cannot be read either", noClassFile);
      return;
    }
    if (handles) {
      throw new OutboxException(
          "%s has an @OutboxHandler, and its methods cannot be looked at, since one of them names a class that cannot be loaded: %s; put that class on the class path"
              .formatted(beanClass.getName(), NestedExceptionUtils.getMostSpecificCause(unknown)),
          unknown);
    }
  }

  private static void passBy(String bean, Throwable unknown) {
    log.debug("Bean '{}' cannot be looked at for handlers of messages", bean, unknown);
  }

  private void add(String name, Class<?> beanClass, Method method, OutboxHandler handler) {
    requireOneInstance(name, beanClass, method);
    HandlerAttributes attributes = HandlerAttributes.of(handler, method, beanClass, beans);
    HandlerMethod added =
        new HandlerMethod(
            handler,
            attributes.types(),
            attributes.linger(),
            method,
            beanClass,
            beans.getBean(name));
    String queue = attributes.queue();
    List<HandlerMethod> ofQueue = found.computeIfAbsent(queue, key -> new ArrayList<>());
    for (HandlerMethod other : ofQueue) {
      requireApart(queue, added, other);
    }
    ofQueue.add(added);
  }

  /** Who declares a prototype means a new one for each message, and would share one. */
  private void requireOneInstance(String name, Class<?> beanClass, Method method) {
    if (beans.isPrototype(name)) {
      throw new OutboxException(
          "@OutboxHandler %s.%s is on a prototype, of which all messages would share one instance; let the bean be a singleton, and take what is new for each message from an ObjectProvider"
              .formatted(ClassUtils.getUserClass(beanClass).getName(), method.getName()));
    }
  }

  private static void requireApart(String queue, HandlerMethod one, HandlerMethod other) {
    if (one.types().isEmpty() && other.types().isEmpty()) {
      throw new OutboxException(
          "%s and %s both handle all other types of queue '%s'; keep one of them"
              .formatted(other, one, queue));
    }
    for (String type : one.types()) {
      if (other.types().contains(type)) {
        throw new OutboxException(
            "%s and %s both handle type '%s' of queue '%s'; keep one of them"
                .formatted(other, one, type, queue));
      }
    }
  }
}
