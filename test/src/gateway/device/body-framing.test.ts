import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BodyFraming,
  framedAfter,
  framingFor,
  NO_OPEN_CHUNK,
} from '../../../../src/gateway/device/body-framing.ts'
import { chunked, pieces } from '../../../support/devices/raw-device.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const TRAILER = '0\r\nCapfleet-Complete: 1\r\nX-Y:  z \r\n\r\n'

function walkAll(framing: BodyFraming, parts: Iterable<Uint8Array>) {
  const data: Buffer[] = []
  const framed: Buffer[] = []
  let open = NO_OPEN_CHUNK
  for (const part of parts) {
    assert.equal(framing.fault, undefined)
    const walked = framing.walk(Buffer.from(part))
    data.push(...walked.data)
    framed.push(...walked.framed)
    open = walked.open
  }
  return { data: Buffer.concat(data), framed: Buffer.concat(framed), open }
}

test('passes chunks on as they are, split anywhere, and keeps the last one back', (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 300; round++) {
    const body = Buffer.from(Array.from({ length: random.integer(0, 600) }, () => random.integer(0, 255)))
    const sizes = Array.from({ length: 5 }, () => random.integer(1, random.integer(0, 9) === 0 ? 300 : 20))
    const chunks = chunked(body, sizes)
    const lengths = Array.from({ length: 5 }, () => random.integer(1, random.integer(0, 2) === 0 ? 3 : 90))
    const framing = framingFor('chunked')
    const walked = walkAll(framing, pieces(Buffer.concat([chunks, Buffer.from(TRAILER)]), lengths))
    assert.ok(walked.data.equals(body))
    assert.ok(walked.framed.equals(chunks))
    assert.ok(framing.ended)
    assert.deepEqual({ ...framing.trailers }, { 'capfleet-complete': '1', 'x-y': 'z' })
  }
})

test('is not at the end before the very last byte, and what was passed can be followed by more chunks', () => {
  const body = Buffer.from('some bytes of a body')
  const all = Buffer.concat([chunked(body, [1, 3, 16]), Buffer.from(TRAILER)])
  for (let cut = 0; cut < all.length; cut++) {
    const framing = framingFor('chunked')
    const { data, framed, open } = walkAll(framing, [all.subarray(0, cut)])
    assert.equal(framing.closed(), false)
    const more = [Buffer.from('!'), Buffer.alloc(0), Buffer.from('another one')]
    const received = framingFor('chunked')
    const seen = walkAll(received, [framed, ...framedAfter(open, more).framed])
    assert.equal(received.fault, undefined, `cut at ${cut}`)
    assert.equal(seen.data.toString(), data.toString() + more.join(''), `cut at ${cut}`)
    assert.equal(received.ended, false)
  }
})

for (const [what, text] of [
  ['no size', '\r\n'],
  ['a size that is no number', 'xyz\r\n'],
  ['a signed size', '-1\r\n'],
  ['a prefixed size', '0x5\r\nabcde\r\n'],
  ['a space behind the size', '5 \r\nabcde\r\n'],
  ['a size beyond all measure', '1000000000000\r\n'],
  ['an endless extension', `5;${'a'.repeat(300)}`],
  ['a control character in an extension', '5;a=\x01\r\nabcde\r\n'],
  ['a bare line feed behind the size', '5\nabcde\r\n'],
  ['more data than its size', '5\r\nabcdefg\r\n'],
  ['a bare line feed behind the data', '5\r\nabcde\n'],
  ['bytes after the end', '0\r\n\r\nHTTP/1.1 200 OK\r\n'],
  ['an endless trailer line', `0\r\na: ${'b'.repeat(9_000)}`],
  ['a trailer of many lines', `0\r\n${'a: b\r\n'.repeat(2_000)}`],
  ['a malformed trailer', '0\r\nno colon\r\n\r\n'],
] as const) {
  test(`sees that a device sent ${what}, however it is split`, () => {
    for (const lengths of [[text.length], [1], [3]]) {
      const framing = framingFor('chunked')
      for (const part of pieces(Buffer.from(`3\r\nabc\r\n${text}`, 'latin1'), lengths)) {
        framing.walk(Buffer.from(part))
        if (framing.fault !== undefined) break
      }
      assert.notEqual(framing.fault, undefined)
    }
  })
}

test('a body of known length ends with its last byte, and anything after it is a fault', () => {
  const framing = framingFor(5)
  assert.equal(walkAll(framing, [Buffer.from('abc')]).data.toString(), 'abc')
  assert.deepEqual([framing.ended, framing.closed()], [false, false])
  const { data, framed } = framing.walk(Buffer.from('defg'))
  assert.equal(Buffer.concat(data).toString(), 'de')
  assert.equal(Buffer.concat(framed).toString(), '2\r\nde\r\n')
  assert.ok(framing.ended && framing.fault !== undefined)
  const exact = framingFor(5)
  walkAll(exact, [Buffer.from('ab'), Buffer.from('cde')])
  assert.deepEqual([exact.ended, exact.closed(), exact.fault], [true, true, undefined])
})

test('what is passed before a fault can be followed by more chunks', () => {
  const framing = framingFor('chunked')
  const { framed, open } = framing.walk(Buffer.from('3\r\nabc\r\n2\r\ndefg'))
  assert.notEqual(framing.fault, undefined)
  const received = framingFor('chunked')
  const seen = walkAll(received, [Buffer.concat(framed), ...framedAfter(open, [Buffer.from('!')]).framed])
  assert.equal(seen.data.toString(), 'abcde!')
})

test('a body whose chunks stop anywhere continues in chunks of other sizes, and ends where it should', (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 500; round++) {
    const body = Buffer.from(Array.from({ length: random.integer(1, 300) }, () => random.integer(0, 255)))
    const wire = chunked(body, [random.integer(1, 400), random.integer(1, 20)])
    const before = framingFor('chunked')
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
    const received = framingFor('chunked')
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
