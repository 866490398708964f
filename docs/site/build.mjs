// Builds the documentation site into target/site: node docs/site/build.mjs [--without-javadoc]
//
// The pages are README.md, CHANGELOG.md and docs/**/*.md as they are. They are copied into
// target/site-build, which has the packages and the configuration as well, so that nothing is
// written into docs. A dead link, between pages or into the javadoc, fails the build.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { faults } from './check-links.mjs'
import { PAGES, siteOf } from './.vitepress/pages.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = resolve(HERE, '../..')
const WORK = join(ROOT, 'target/site-build')
const SITE = join(ROOT, 'target/site')
const WINDOWS = process.platform === 'win32'

function run(what, command, args, cwd) {
  const begun = Date.now()
  const { status, error } = spawnSync(command, args, {
    cwd,
    stdio: 'inherit',
    shell: WINDOWS,
    env: { ...process.env, OUTBOX4J_ROOT: ROOT }
  })
  if (error || status !== 0) {
    console.error(`${what} failed: ${error ?? `status ${status}`}`)
    process.exit(1)
  }
  console.log(`${what}: ${Math.round((Date.now() - begun) / 1000)} s`)
}

function fail(what, lines) {
  console.error(`${what}:\n${lines.map((line) => `  ${line}`).join('\n')}`)
  process.exit(1)
}

/** The Markdown below docs, as paths in the project. */
function documents(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return path === 'docs/site' ? [] : documents(path)
    return entry.name.endsWith('.md') ? [path] : []
  })
}

const named = PAGES.flatMap((group) => group.pages.map((page) => page.file))
const there = ['README.md', 'CHANGELOG.md', ...documents('docs')]
const unnamed = there.filter((file) => !named.includes(file))
if (unnamed.length > 0) fail('not in docs/site/.vitepress/pages.mjs', unnamed)
const missing = named.filter((file) => !there.includes(file))
if (missing.length > 0) fail('in docs/site/.vitepress/pages.mjs, but not there', missing)

rmSync(SITE, { recursive: true, force: true })
rmSync(join(WORK, 'src'), { recursive: true, force: true })
rmSync(join(WORK, '.vitepress'), { recursive: true, force: true })
mkdirSync(join(WORK, 'src'), { recursive: true })
for (const name of ['package.json', 'package-lock.json', '.npmrc', '.vitepress']) {
  cpSync(join(HERE, name), join(WORK, name), { recursive: true })
}
for (const file of there) {
  cpSync(join(ROOT, file), join(WORK, 'src', siteOf(file)))
}
if (existsSync(join(ROOT, 'docs/images'))) {
  cpSync(join(ROOT, 'docs/images'), join(WORK, 'src/images'), { recursive: true })
}

// The lock file decides on versions here as well, and 'npm ci' would refuse one without the packages
// for platforms that a mirror does not have.
run('packages', 'npm', ['install', '--prefer-offline', '--no-progress'], WORK)
run('pages', process.execPath, ['node_modules/vitepress/bin/vitepress.js', 'build', '.'], WORK)

if (!process.argv.includes('--without-javadoc')) {
  // All that users depend on. The module for Boot 3.5 has no API of its own, and the classes of two
  // Boots do not go on one class path.
  const modules = [...readFileSync(join(ROOT, 'pom.xml'), 'utf8').split('</modules>')[0].matchAll(/<module>(.*?)<\/module>/g)]
    .map((module) => module[1])
    .filter((module) => !module.startsWith('examples') && module !== 'outbox-spring-boot-3')
  const apidocs = join(ROOT, 'target/reports/apidocs')
  rmSync(apidocs, { recursive: true, force: true })
  run(
    'javadoc',
    join(ROOT, WINDOWS ? 'mvnw.cmd' : 'mvnw'),
    [
      '-q',
      '-B',
      '-P!strict',
      '-pl',
      ['.', ...modules].join(','),
      '-Denforcer.skip',
      '-Ddoclint=none',
      '-Dquiet',
      '-DexcludePackageNames=*.internal:*.internal.*',
      '-Dwindowtitle=Outbox4j',
      '-Ddoctitle=Outbox4j',
      'javadoc:aggregate'
    ],
    ROOT
  )
  cpSync(apidocs, join(SITE, 'javadoc'), { recursive: true })
}

const dead = faults(SITE, process.argv.includes('--without-javadoc') ? ['/javadoc/'] : [])
if (dead.length > 0) fail('dead links', dead)
console.log(`${there.length} pages in ${SITE}`)
