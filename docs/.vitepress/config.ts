/**
 * How docs becomes dist-docs, the documentation that a gateway serves at /docs: static pages that work below any path.
 *
 * 2026-11-28: VitePress 2, although it is an alpha. It makes pages with relative addresses, which a prefix of a proxy
 * needs, and shares vite with the page. Its search is a script with an index; Starlight's is WebAssembly, which needs a
 * looser policy. VitePress 1 needs vite 5, whose known holes are not closed any more.
 */
import { defineConfig } from 'vitepress'
import { SEARCH_OPTIONS } from './search-options.ts'
import { SECTIONS } from './sections.ts'

// biome-ignore lint/style/noDefaultExport: vitepress reads its configuration so
export default defineConfig({
  title: 'capfleet',
  description: 'One URL in front of many packet-capture appliances, and the appliance itself',
  // Relative addresses: the site does not know below which path a proxy serves it.
  base: './',
  outDir: '../dist-docs',
  cacheDir: '../node_modules/.cache/vitepress',
  lastUpdated: false,
  // Disabling transitions takes a style element, which the policy of the pages does not allow.
  appearance: { disableTransition: false },
  // A broken link fails the build.
  ignoreDeadLinks: false,
  markdown: {
    // Highlighting sets colours in style attributes, which the policy of the pages does not allow.
    highlight: (text) => `<pre v-pre><code>${escaped(text)}</code></pre>`,
    headers: false,
  },
  themeConfig: {
    sidebar: SECTIONS.map(({ text, pages }) => ({
      text,
      items: pages.map(([title, path]) => ({ text: title, link: `/${path}` })),
    })),
    outline: [2, 3],
    search: { provider: 'local', options: { miniSearch: { searchOptions: SEARCH_OPTIONS } } },
    footer: { message: 'Apache-2.0' },
  },
  // The policy of the pages allows no style attributes; the theme sets these two again where they matter.
  transformHtml: (html) => html.replaceAll(/ style="(?:position:relative;|--vp-vh:0px;)"/g, ''),
  vite: { build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 2_000 } },
})

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
