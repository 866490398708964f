// Shows what the built site looks like: node docs/site/screenshots.mjs CHROMIUM [SITE]
//
// Chromium draws each page of target/site 400 and 1,400 pixels wide into target/screenshots. A page
// that is wider than that, so that a reader would have to scroll sideways, fails it. What scrolls
// by itself, such as code and tables, may be wider.
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname, extname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
const [CHROMIUM, SITE = join(ROOT, 'target/site')] = process.argv.slice(2)
const SHOTS = join(ROOT, 'target/screenshots')
const WIDTHS = [400, 1400]
const HEIGHT = { 400: 4800, 1400: 1200 }
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' }
const MEASURE = '/measure.html'

if (!CHROMIUM) {
  console.error('usage: node docs/site/screenshots.mjs CHROMIUM [SITE]')
  process.exit(2)
}

/** The pages, but for those that javadoc wrote. */
function pages(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'javadoc' ? [] : pages(path)
    return entry.name.endsWith('.html') ? [relative(SITE, path).split(sep).join('/')] : []
  })
}

/** A page that loads another one in a frame of that width, and says how wide its content is. */
function measure(page, width) {
  return `<body><iframe src="/${page}" style="width:${width}px;height:1000px;border:0"
    onload="setTimeout(() => { document.title = 'wide:' +
      this.contentDocument.documentElement.scrollWidth + ':' +
      this.contentDocument.body.innerText.length + ':' }, 1500)"></iframe></body>`
}

const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://localhost')
  if (url.pathname === MEASURE) {
    response.setHeader('Content-Type', 'text/html')
    response.end(measure(url.searchParams.get('page'), url.searchParams.get('width')))
    return
  }
  const file = join(SITE, decodeURIComponent(url.pathname))
  try {
    if (!file.startsWith(SITE) || !statSync(file).isFile()) throw new Error('no file')
    response.setHeader('Content-Type', TYPES[extname(file)] ?? 'application/octet-stream')
    response.end(readFileSync(file))
  } catch {
    response.statusCode = 404
    response.end()
  }
})
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))
const at = `http://127.0.0.1:${server.address().port}`

async function chromium(...options) {
  const all = ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--virtual-time-budget=10000']
  const { stdout } = await promisify(execFile)(CHROMIUM, [...all, ...options], { maxBuffer: 1 << 26, timeout: 60000 })
  return stdout
}

rmSync(SHOTS, { recursive: true, force: true })
mkdirSync(SHOTS, { recursive: true })
const faults = []
const all = pages(SITE)
for (const page of all) {
  for (const width of WIDTHS) {
    const dom = await chromium('--window-size=1500,1100', '--dump-dom', `${at}${MEASURE}?page=${page}&width=${width}`)
    const [, wide, letters] = /<title>wide:(\d+):(\d+):/.exec(dom) ?? []
    if (!(letters > 0)) faults.push(`${page}: could not be measured`)
    if (wide > width) faults.push(`${page}: ${wide} pixels wide in a window of ${width}`)
    await chromium(
      `--window-size=${width},${HEIGHT[width]}`,
      `--screenshot=${join(SHOTS, `${page.replaceAll('/', '-').replace('.html', '')}-${width}.png`)}`,
      `${at}/${page}`
    )
  }
}
server.close()
console.log(`${all.length * WIDTHS.length} screenshots in ${SHOTS}`)
if (faults.length > 0) {
  console.error(faults.map((fault) => `  ${fault}`).join('\n'))
  process.exit(1)
}
