import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linesOf } from '../../../../src/console/base/body-lines.ts'

test('lines are the same however the body is cut, also inside a character, without one that has no end', async () => {
  const bytes = new TextEncoder().encode('{"device":"Zürich"}\n\n{"site":"東京"}\ncut')
  for (const size of [1, 2, 3, bytes.length]) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.slice(i * size, (i + 1) * size),
    )
    const body = new ReadableStream<Uint8Array>({
      start: (out) => {
        for (const piece of pieces) out.enqueue(piece)
        out.close()
      },
    })
    const lines = await Array.fromAsync(linesOf(body))
    assert.deepEqual(lines, ['{"device":"Zürich"}', '', '{"site":"東京"}'], `${size} bytes at a time`)
  }
})
