// What may end as the rest of a merge that was requested again starting at some time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Body, DeviceResult } from '../../../../../src/gateway/fetch/body/body.ts'
import { continueFrom, Rest, restOfBody } from '../../../../../src/gateway/fetch/body/continue-from.ts'
import { planDownload } from '../../../../../src/gateway/fleet/plan/plan.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'

const QUERY = parseDownloadQuery('timerange', parseQueryString('TSBegin=1&TSEnd=2&TSUnit=sec'), {
  zone: 'UTC',
  nowNs: 0n,
})
const IN_ORDER = { status: 'complete', isOrdered: true, outOfOrder: 0 } as DeviceResult
const START_BYTES = 1_000

/** The rest after this many bytes, if the devices end as given. */
async function restOf(
  perDevice: readonly DeviceResult[],
  options: { devices: string[]; startBytes: number },
) {
  const { devices, startBytes } = options
  const plan = planDownload(withinBounds(QUERY, UNBOUNDED), devices, 10)
  const again = Buffer.from(Array.from({ length: 500 }, (_, index) => index % 256))
  async function* chunks() {
    yield again
  }
  const body = { chunks: chunks(), isParkable: true, result: () => ({ perDevice }) } as unknown as Body
  const bytes = Math.max(24, startBytes) + 100
  const headerBytes = startBytes === 0 ? 0 : 24
  const rest = new Rest({ startBytes, headerBytes, bytes, known: [], devices })
  const continuation = { rest, startBytes, headerBytes, plan }
  const { chunks: missing } = await restOfBody(body, continuation, { bytes, first: new Uint8Array(0) })
  const parts: Uint8Array[] = []
  for await (const part of missing) parts.push(part)
  return { bytes: Buffer.concat(parts), again }
}

test('a merge whose devices sent in the order of time ends with what was missing', async () => {
  const missing = { ...IN_ORDER, status: 'missing', isOrdered: false } as const
  for (const perDevice of [
    [IN_ORDER, IN_ORDER],
    [IN_ORDER, missing],
  ]) {
    const { bytes, again } = await restOf(perDevice, { devices: ['a', 'b'], startBytes: START_BYTES })
    assert.ok(bytes.equals(again.subarray(24 + 100)))
  }
})

test('one that a device sent out of order, or without declaring its order, is cut: packets may be missing', async () => {
  for (const other of [
    { ...IN_ORDER, outOfOrder: 1 },
    { ...IN_ORDER, isOrdered: false },
  ]) {
    await assert.rejects(restOf([IN_ORDER, other], { devices: ['a', 'b'], startBytes: START_BYTES }), {
      code: 'aged-out',
    })
    // Starting at its first byte, nothing can be missing, and one device is asked by bytes.
    await restOf([IN_ORDER, other], { devices: ['a', 'b'], startBytes: 0 })
    await restOf([other], { devices: ['a'], startBytes: START_BYTES })
  }
})

test('a header that was too long to be kept leaves only the first byte to continue from', () => {
  const plan = planDownload(withinBounds(QUERY, UNBOUNDED), ['a'], 10)
  const position = { bytes: '2097152', fromNs: null, hashedBytes: 0, crc32: 0, headerBytes: 64 }
  const last = { bytes: '2400000', fromNs: null, hashedBytes: 0, crc32: 0 }
  const after = (header: string) => {
    const places = { header, positions: [position], last, wholeBytes: '2400000' }
    const { startBytes, headerBytes } = continueFrom(plan, { bytes: 2_400_000, places })
    return { startBytes, headerBytes }
  }
  assert.deepEqual(after('00'.repeat(96)), { startBytes: 2_097_152, headerBytes: 64 })
  assert.deepEqual(after(''), { startBytes: 0, headerBytes: 0 })
})
