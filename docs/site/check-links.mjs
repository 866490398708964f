import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'

// javadoc checks its own links
const OTHERS = ['javadoc']
const ELSEWHERE = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i

function unescaped(text) {
  return text.replace(/&quot;/g, '"').replace(/&#39;/g, "'").replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&')
}

function attributes(html, names) {
  const found = html.matchAll(new RegExp(`<[a-z][^<>]*?\\s(?:${names})="([^"]*)"`, 'gi'))
  return [...found].map((match) => unescaped(match[1]))
}

function pages(site, folder = '') {
  return readdirSync(join(site, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = posix.join(folder, entry.name)
    if (entry.isDirectory()) return OTHERS.includes(path) ? [] : pages(site, path)
    return entry.name.endsWith('.html') ? [path] : []
  })
}

/** Dead links of the built pages: to no file of the site, or to no place in it. */
export function faults(site, leftOut = []) {
  const places = new Map()
  function placesOf(path) {
    if (!places.has(path)) {
      places.set(path, new Set(attributes(readFileSync(join(site, path), 'utf8'), 'id|name')))
    }
    return places.get(path)
  }
  const found = []
  for (const page of pages(site)) {
    const html = readFileSync(join(site, page), 'utf8')
    for (const link of new Set(attributes(html, 'href|src'))) {
      if (ELSEWHERE.test(link) || leftOut.some((start) => link.startsWith(start))) continue
      const [path, place] = link.split('#')
      let target = path.split('?')[0]
      target = target === '' ? page : posix.join(target.startsWith('/') ? '' : posix.dirname(page), decodeURIComponent(target))
      target = target.replace(/^\//, '')
      if (existsSync(join(site, target)) && statSync(join(site, target)).isDirectory()) {
        target = posix.join(target, 'index.html')
      }
      if (!existsSync(join(site, target))) {
        found.push(`${page}: ${link} leads to no file`)
      } else if (place && target.endsWith('.html') && !placesOf(target).has(decodeURIComponent(place))) {
        found.push(`${page}: ${link} leads to no place in ${target}`)
      }
    }
  }
  return found
}
