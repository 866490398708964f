import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { defineConfig } from 'vitepress'
import { linkIn, PAGES, siteOf } from './pages.mjs'

const ROOT = process.env.OUTBOX4J_ROOT
const kept = new Set()

/** A file of the project that is no page, such as the figures as JSON: the site has a copy. */
function keep(file) {
  kept.add(file)
  // the browser shows a file without an ending as text only if it has one
  return `/files/${file}${/\.\w+$/.test(file) ? '' : '.txt'}`
}

/** The files of a folder of the project, such as an example, as one text; not what is built there. */
function textOf(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.name !== 'target')
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((entry) => {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory()) return textOf(path)
      return `===== ${path} =====\n\n${readFileSync(join(ROOT, path), 'utf8')}\n`
    })
    .join('')
}

/** Links of the project become links of the site. */
function links(md) {
  md.core.ruler.push('links-of-the-site', (state) => {
    const page = state.env.relativePath
    if (!page) return
    for (const token of state.tokens.flatMap((block) => block.children ?? [])) {
      const name = token.type === 'link_open' ? 'href' : token.type === 'image' ? 'src' : null
      if (name) token.attrSet(name, linkIn(page, token.attrGet(name), keep))
    }
  })
}

/** Diagrams are drawn in the browser; until then, and without scripts, their text is shown. */
function diagrams(md) {
  const fence = md.renderer.rules.fence
  md.renderer.rules.fence = (tokens, index, ...others) => {
    const token = tokens[index]
    return token.info.trim() === 'mermaid'
      ? `<Diagram id="diagram-${index}" code="${encodeURIComponent(token.content)}"></Diagram>\n`
      : fence(tokens, index, ...others)
  }
}

/** A wide table scrolls by itself, and the page does not. */
function tables(md) {
  md.renderer.rules.table_open = () => '<div class="table"><table tabindex="0">\n'
  md.renderer.rules.table_close = () => '</table></div>\n'
}

/** As on GitHub, so that a link to a heading is good there and here. */
function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replace(/ /g, '-')
}

export default defineConfig({
  title: 'Outbox4j',
  description: 'A transactional outbox for Java services, on PostgreSQL',
  lang: 'en',
  srcDir: 'src',
  outDir: join(ROOT, 'target/site'),
  markdown: {
    linkify: false,
    attrs: { disable: true },
    anchor: { slugify },
    config(md) {
      md.core.ruler.disable('emoji')
      links(md)
      diagrams(md)
      tables(md)
    }
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    nav: [{ text: 'Javadoc', link: '/javadoc/index.html', target: '_self' }],
    sidebar: PAGES.map((group) => ({
      text: group.text,
      items: group.pages.map((page) => ({
        text: page.text,
        link: `/${siteOf(page.file).replace(/\.md$/, '').replace(/^index$/, '')}`
      }))
    }))
  },
  // mermaid is large, and is loaded only where there is a diagram
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  buildEnd(site) {
    for (const file of kept) {
      const to = join(site.outDir, keep(file))
      mkdirSync(dirname(to), { recursive: true })
      if (statSync(join(ROOT, file)).isDirectory()) {
        writeFileSync(to, textOf(file))
      } else {
        cpSync(join(ROOT, file), to)
      }
    }
  }
})
