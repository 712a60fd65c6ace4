/** How the page is built: into dist-console, for the gateway to serve below any path. */
import { defineConfig, type Plugin } from 'vite'
import { withoutEval } from './without-eval.ts'

/** Names with a hash never change their contents: browsers may cache them forever. */
const ASSET_NAME = 'assets/[name]-[hash][extname]'

/** What the page loads first has no hash in its name: each gateway has it, whichever version the page is from. */
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
    // As data: addresses they would need a more permissive policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { output: { assetFileNames: ASSET_NAME } },
    chunkSizeWarningLimit: 1_500,
  },
  // For development: the demo's gateway answers everything except the page.
  server: {
    proxy: Object.fromEntries(
      ['/v1', '/api', '/devices', '/stream', '/sysmaster', '/pcap'].map((path) => [
        path,
        process.env.CAPFLEET_GATEWAY ?? 'http://127.0.0.1:8080',
      ]),
    ),
  },
})
