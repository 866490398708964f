import { posix } from 'node:path'

/** What the site has, in the order of its menu. A page that is missing here fails the build. */
export const PAGES = [
  {
    text: 'Outbox4j',
    pages: [
      { file: 'README.md', text: 'Overview' },
      { file: 'docs/getting-started.md', text: 'Getting started' },
      { file: 'docs/choosing.md', text: 'Choosing' },
      { file: 'docs/how-it-works.md', text: 'How it works' }
    ]
  },
  {
    text: 'Using it',
    pages: [
      { file: 'docs/spring-boot.md', text: 'With Spring Boot' },
      { file: 'docs/jpa.md', text: 'With JPA' },
      { file: 'docs/publishing.md', text: 'Publishing' },
      { file: 'docs/subscribing.md', text: 'Subscribing' },
      { file: 'docs/exactly-once.md', text: 'Exactly-once effects' },
      { file: 'docs/batches.md', text: 'Batches' },
      { file: 'docs/ordering.md', text: 'Order' },
      { file: 'docs/dead-letters.md', text: 'Dead letters' },
      { file: 'docs/pausing.md', text: 'Pausing' },
      { file: 'docs/limits.md', text: 'Limits' },
      { file: 'docs/deduplication.md', text: 'Deduplication' },
      { file: 'docs/timers.md', text: 'Timers' },
      { file: 'docs/monitors.md', text: 'Monitors' },
      { file: 'docs/table-pollers.md', text: 'Table pollers' },
      { file: 'docs/locks.md', text: 'Locks' },
      { file: 'docs/job-queues.md', text: 'Job queues' },
      { file: 'docs/coming-from.md', text: 'Coming from' },
      { file: 'docs/testing.md', text: 'Testing your service' },
      { file: 'docs/schema-and-validation.md', text: 'Schema and validation' },
      { file: 'docs/upgrading.md', text: 'Upgrading' }
    ]
  },
  {
    text: 'Reference',
    pages: [
      { file: 'docs/configuration.md', text: 'Configuration' },
      { file: 'docs/metrics.md', text: 'Metrics' },
      { file: 'docs/dependencies.md', text: 'Dependencies' },
      { file: 'docs/guarantees.md', text: 'Guarantees' },
      { file: 'docs/decisions.md', text: 'Decisions' },
      { file: 'CHANGELOG.md', text: 'Changelog' }
    ]
  },
  {
    text: 'Operations',
    pages: [
      { file: 'docs/operations/troubleshooting.md', text: 'Troubleshooting and sizing' },
      { file: 'docs/operations/runbook-poison-messages.md', text: 'Runbook: poison messages' },
      { file: 'docs/operations/runbook-dead-letter-ratio.md', text: 'Runbook: dead-letter ratio' },
      { file: 'docs/operations/security.md', text: 'Security' }
    ]
  },
  {
    text: 'Evidence',
    pages: [
      { file: 'docs/benchmarks.md', text: 'Benchmarks' },
      { file: 'docs/operations/fault-harness.md', text: 'Fault harness' },
      { file: 'docs/chaos-report.md', text: 'Report of a run' },
      { file: 'docs/operations/mutation-testing.md', text: 'Mutation testing' }
    ]
  }
]

/** Where a page of the project is in the site. */
export function siteOf(file) {
  if (file === 'README.md') return 'index.md'
  if (file === 'CHANGELOG.md') return 'changelog.md'
  return file.replace(/^docs\//, '')
}

/** The file of the project that a page of the site was. */
export function fileOf(page) {
  if (page === 'index.md') return 'README.md'
  if (page === 'changelog.md') return 'CHANGELOG.md'
  return `docs/${page}`
}

/**
 * Where a link of the project leads in the site. To a page it is relative; any other file of the
 * project is told to `keep`, which says where it will be.
 */
export function linkIn(page, link, keep) {
  if (/^(?:[a-z][a-z0-9+.-]*:|#|\/)/i.test(link)) return link
  const [path, place] = link.split('#')
  const file = posix.normalize(posix.join(posix.dirname(fileOf(page)), path))
  const anchor = place === undefined ? '' : `#${place}`
  const from = posix.dirname(page)
  if (file.endsWith('.md') || file.startsWith('docs/images/')) {
    const to = posix.relative(from, siteOf(file))
    return (to.startsWith('.') ? to : `./${to}`) + anchor
  }
  return keep(file)
}
