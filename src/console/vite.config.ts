/** How the page is built: into dist-console, for the gateway to serve below whatever path it is reached. */
import { defineConfig, type Plugin } from 'vite'
import { withoutEval } from './without-eval.ts'

/** Names with the same hash hold the same bytes: gateways let browsers keep them for ever. */
const ASSET_NAME = 'assets/[name]-[hash][extname]'

/** What the page loads before all else has no hash in its name: each gateway has it, whatever the page that names it. */
const FIRST = ['again.js', 'theme.js']

function withFirst(): Plugin {
  return {
    name: 'first',
    async generateBundle() {
      for (const name of FIRST) {
        const source = await this.fs.readFile(decodeURI(new URL(name, import.meta.url).pathname))
        this.emitFile({ type: 'asset', fileName: `assets/${name}`, source })
      }
    },
  }
}

// biome-ignore lint/style/noDefaultExport: vite reads its configuration so
export default defineConfig({
  base: './',
  // A public name in the address of an import would be a second way to serve files.
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [withoutEval(), withFirst()],
  worker: { format: 'es', plugins: () => [withoutEval()] },
  build: {
    outDir: '../../dist-console',
    emptyOutDir: true,
    target: 'es2022',
    // As data: addresses they would need a wider policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { output: { assetFileNames: ASSET_NAME } },
    chunkSizeWarningLimit: 1_500,
  },
  // While developing: the demo's gateway answers what is not the page.
  server: {
    proxy: Object.fromEntries(
      ['/v1', '/api', '/devices', '/stream', '/sysmaster', '/pcap'].map((path) => [
        path,
        process.env.CAPFLEET_GATEWAY ?? 'http://127.0.0.1:8080',
      ]),
    ),
  },
})
