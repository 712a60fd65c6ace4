/**
 * How the dissector is built: into a folder of dist-dissector that is named by the hash of its content, so that browsers
 * can cache its files permanently. All of them are compressed, and the gateway sends them so.
 */
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const WIREGASM = 'node_modules/@goodtools/wiregasm'
/** Name in the folder -> where it is; what the package has compressed already is not compressed again. */
const COPIED = {
  'frame.html': 'frame.html',
  'NOTICE.txt': 'NOTICE.txt',
  'LICENSE.txt': `${WIREGASM}/LICENSE`,
  'wiregasm.js': `${WIREGASM}/dist/wiregasm.js`,
  'wiregasm.wasm': `${WIREGASM}/dist/wiregasm.wasm.gz`,
  'wiregasm.data': `${WIREGASM}/dist/wiregasm.data.gz`,
}

function compressedFolder(): Plugin {
  return {
    name: 'compressed-folder',
    generateBundle(_, bundle) {
      const files = new Map(Object.entries(COPIED).map(([name, path]) => [name, compressed(path)]))
      for (const [name, output] of Object.entries(bundle)) {
        if (output.type === 'chunk') files.set('frame.js', gzipSync(output.code, { level: 9 }))
        delete bundle[name]
      }
      const hashes = [...files].map(([name, bytes]) => `${name} ${hash('sha256', bytes)}\n`)
      const folder = hash('sha256', hashes.join('')).slice(0, 16)
      for (const [name, source] of files)
        this.emitFile({ type: 'asset', fileName: `${folder}/${name}.gz`, source })
    },
  }
}

function compressed(path: string): Buffer {
  const bytes = readFileSync(fileURLToPath(new URL(path, import.meta.url)))
  return path.endsWith('.gz') ? bytes : gzipSync(bytes, { level: 9 })
}

// biome-ignore lint/style/noDefaultExport: vite reads its configuration so
export default defineConfig({
  publicDir: false,
  plugins: [compressedFolder()],
  build: {
    outDir: '../../dist-dissector',
    emptyOutDir: true,
    target: 'es2022',
    lib: { entry: 'frame.ts', formats: ['iife'], name: 'frame', fileName: 'frame' },
    minify: false,
    reportCompressedSize: false,
  },
})
