import assert from 'node:assert/strict'
import { test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import type { Decoded } from '../../../../src/console/inside/decoder-worker.ts'

const worker = new EventTarget()
const answers: ((decoded: Decoded) => void)[] = []
Object.assign(globalThis, {
  self: Object.assign(worker, { postMessage: (decoded: Decoded) => answers.shift()?.(decoded) }),
})
await import('../../../../src/console/inside/decoder-worker.ts')

function decode(compressed: unknown): Promise<Decoded> {
  return new Promise((resolve) => {
    answers.push(resolve)
    worker.dispatchEvent(new MessageEvent('message', { data: { id: 7, compressed } }))
  })
}

test('each order is answered: by its bytes, or by none where it is no zstd or the codec fails', async () => {
  const bytes = new TextEncoder().encode('packets')
  assert.deepEqual((await decode(new Uint8Array(zstdCompressSync(bytes)))).bytes, bytes)
  assert.deepEqual(await decode(bytes), { id: 7, bytes: undefined })
  assert.deepEqual(await decode(undefined), { id: 7, bytes: undefined })
})
