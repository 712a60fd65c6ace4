import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ChunkedFraming } from '../../../src/device/chunked-framing.ts'
import { framedAfter } from '../../../src/device/open-chunk.ts'
import { chunked, pieces } from '../../support/devices/raw-device.ts'
import { seededRandom } from '../../support/seeded-random.ts'

test('a body whose chunks stop anywhere goes on in chunks of other sizes, and ends where it should', (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 500; round++) {
    const body = Buffer.from(Array.from({ length: random.integer(1, 300) }, () => random.integer(0, 255)))
    const wire = chunked(body, [random.integer(1, 400), random.integer(1, 20)])
    const before = new ChunkedFraming()
    const passed = before.walk(wire.subarray(0, random.integer(1, wire.length)))
    const written: Uint8Array[] = [...passed.framed]
    const rest = body.subarray(Buffer.concat(passed.data).length)
    let { open } = passed
    for (const piece of pieces(rest, [random.integer(1, 50), random.integer(1, 400)])) {
      const half = random.integer(0, piece.length)
      const next = framedAfter(open, [piece.subarray(0, half), piece.subarray(half)])
      written.push(...next.framed)
      open = next.open
    }
    assert.equal(open.dataBytes, 0)
    written.push(Buffer.from(`${open.lineEnd}0\r\n\r\n`))
    const received = new ChunkedFraming()
    const seen = received.walk(Buffer.concat(written))
    assert.ok(received.ended && received.fault === undefined)
    assert.ok(Buffer.concat(seen.data).equals(body))
  }
})

test('fewer bytes than the open chunk has to hold leave it open', () => {
  const { framed, open } = framedAfter({ dataBytes: 5, lineEnd: '\r\n' }, [Buffer.from('abc')])
  assert.equal(Buffer.concat(framed).toString(), 'abc')
  assert.deepEqual(open, { dataBytes: 2, lineEnd: '\r\n' })
})
