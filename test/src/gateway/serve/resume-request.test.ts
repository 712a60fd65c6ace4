// Where a download with a receipt resumes, and which part of the body its client has.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResumeFacts, StoredReceipt } from '../../../../src/gateway/serve/receipt.ts'
import { resumedRequest } from '../../../../src/gateway/serve/resume-request.ts'

const HEADER = '4d3cb2a1020004000000000000000000ffff000001000000'
const PCAP = { format: 'pcap' } as const
const PLACES = {
  header: HEADER,
  positions: [],
  last: { bytes: '0', fromNs: null, hashedBytes: 0, crc32: 0 },
  wholeBytes: '900',
}

function receiptOf(bytes: number, resume: Partial<ResumeFacts> = {}): StoredReceipt {
  const facts = { places: PLACES, startBytes: '0', headerBytes: 0, isHanded: true, ...resume }
  const error = { code: 'device-unreachable', detail: 'gone' }
  return { id: 'r', status: 'failed', bytes: String(bytes), error, resume: facts } as StoredReceipt
}

test('a growing file continues at its size, a new one at the first packet that did not arrive whole', () => {
  const grown = resumedRequest(receiptOf(950), PCAP, 930n)
  assert.deepEqual([grown.bytes, grown.first.length], [930, 0])
  const fresh = resumedRequest(receiptOf(950), PCAP, undefined)
  assert.deepEqual([fresh.bytes, Buffer.from(fresh.first).toString('hex')], [900, HEADER])
})

test('a new file that was cut itself counts from where its packets lie in the whole body', () => {
  const cut = receiptOf(24 + 350, { startBytes: '600', headerBytes: 24 })
  const grown = resumedRequest(cut, PCAP, 24n + 350n)
  assert.equal(grown.bytes, 950)
  assert.equal(resumedRequest(cut, PCAP, undefined).bytes, 900)
  assert.throws(() => resumedRequest(cut, PCAP, 24n + 351n), /truncate -s 374/)
  assert.throws(() => resumedRequest(cut, PCAP, 23n), /at least 24/)
})

test('if sent data may have been discarded, only the client knows how much arrived', () => {
  const cut = receiptOf(950, { isHanded: false })
  assert.throws(() => resumedRequest(cut, PCAP, undefined), /Offset=<size of your file/)
  assert.equal(resumedRequest(cut, PCAP, 930n).bytes, 930)
})

test('of what never began everything is asked for', () => {
  for (const places of [null, { ...PLACES, wholeBytes: '0' }]) {
    const { bytes, first } = resumedRequest(receiptOf(0, { places }), PCAP, undefined)
    assert.deepEqual([bytes, first.length], [0, 0])
  }
})

test('a receipt of an earlier release, which knows no places, is continued from the beginning', () => {
  const old = receiptOf(950)
  const { places: _, ...resume } = {
    ...old.resume,
    checkpoints: [{ bytes: '950', overBytes: 9, crc32: 1 }],
    marks: [],
  }
  const { bytes, places } = resumedRequest({ ...old, resume: resume as unknown as ResumeFacts }, PCAP, 930n)
  assert.deepEqual([bytes, places], [930, undefined])
})
