import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import type { FoundSightings, Sighting } from '../../../../src/console/timeline/sightings.ts'

const asked: URL[] = []
/** Pieces of the answer. */
let answer: readonly string[] = []
const server = createServer((request, response) => {
  asked.push(new URL(request.url ?? '', 'http://gateway'))
  response.setHeader('content-type', 'application/x-ndjson')
  for (const piece of answer) response.write(piece)
  response.end()
})
await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
after(() => server.close())
// The page derives the gateway's address from its own.
Object.assign(globalThis, {
  location: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
})
const { askSightings, NO_SIGHTINGS, sightingAt, withLine } = await import(
  '../../../../src/console/timeline/sightings.ts'
)

type Line = Parameters<typeof withLine>[1]
const found = (...lines: readonly object[]): FoundSightings =>
  lines.reduce<FoundSightings>((before, line) => withLine(before, line as Line), NO_SIGHTINGS)

const SPAN = { fromNs: '1793610000000000000', toNs: '1793610004500000000' }

test('possible times and counted packets become sightings, exact to the nanosecond', () => {
  const { sightings, end } = found(
    { device: 'east', address: '203.0.113.9', spans: [SPAN] },
    { device: 'west', checkedBytes: '5' },
    {
      device: 'west',
      address: '2001:db8::/48',
      packets: '3',
      bytes: '300',
      firstNs: '1793610000000000001',
      lastNs: '1793610000000000007',
      spans: [],
    },
  )
  assert.deepEqual(sightings, [
    {
      device: 'east',
      address: '203.0.113.9',
      packets: undefined,
      fromNs: 1_793_610_000_000_000_000n,
      toNs: 1_793_610_004_500_000_000n,
    },
    {
      device: 'west',
      address: '2001:db8::/48',
      packets: '3',
      fromNs: 1_793_610_000_000_000_001n,
      toNs: 1_793_610_000_000_000_008n,
    },
  ])
  assert.equal(end, undefined)
})

test('devices that fail are named, and the last line ends the search', () => {
  const end = {
    end: true,
    addresses: 1,
    devices: 2,
    complete: false,
    unanswered: ['west'],
    partial: [],
    agedOut: [],
    otherLinkTypes: [],
  }
  const { failures, end: ended } = found(
    { device: 'west', error: { code: 'device-unreachable', detail: 'device west cannot be reached' } },
    end,
  )
  assert.deepEqual([...failures], [['west', 'device west cannot be reached']])
  assert.deepEqual(ended, end)
})

test('a long answer is cut, and says so', () => {
  const spans = Array.from({ length: 600 }, () => SPAN)
  const line = { device: 'east', address: '10.0.0.1', spans }
  assert.deepEqual([found(line).sightings.length, found(line).isCut], [600, false])
  assert.deepEqual([found(line, line).sightings.length, found(line, line).isCut], [1_000, true])
})

test('a click hits the closest sighting within some pixels', () => {
  const sighting = (fromNs: bigint, toNs: bigint): Sighting => ({
    device: 'east',
    address: '10.0.0.1',
    packets: undefined,
    fromNs,
    toNs,
  })
  const [early, late] = [sighting(100n, 110n), sighting(118n, 200n)]
  const scale = { view: { fromNs: 0n, toNs: 1_000n }, widthPx: 1_000 }
  const at = (ns: bigint) => sightingAt([early, late], ns, scale)
  assert.equal(at(105n), early)
  assert.equal(at(95n), early)
  assert.equal(at(113n), early)
  assert.equal(at(116n), late)
  assert.equal(at(205n), late)
  for (const ns of [93n, 207n]) assert.equal(at(ns), undefined)
})

test('asks for the range in nanoseconds, counts for callers with a filter, and fails if the answer breaks off', async () => {
  const question = {
    addresses: '203.0.113.9',
    fromNs: 5n,
    toNs: 1_793_610_000_000_000_000n,
    isFiltered: false,
  }
  const shown: FoundSightings[] = []
  const ask = (isFiltered: boolean) =>
    askSightings({ ...question, isFiltered }, AbortSignal.timeout(600_000), (next) => shown.push(next))
  const end = {
    end: true,
    addresses: 1,
    devices: 1,
    complete: true,
    unanswered: [],
    partial: [],
    agedOut: [],
    otherLinkTypes: [],
  }
  const line = JSON.stringify({ device: 'é', address: '203.0.113.9', spans: [SPAN] })
  answer = [line.slice(0, 12), `${line.slice(12)}\n${JSON.stringify(end)}\n`]
  await ask(true)
  assert.deepEqual(
    shown.at(-1)?.sightings.map(({ device }) => device),
    ['é'],
  )
  assert.deepEqual(
    [...(asked[0]?.searchParams ?? [])],
    [
      ['Address', '203.0.113.9'],
      ['TSBegin', '5'],
      ['TSEnd', '1793610000000000000'],
      ['TSUnit', 'nanos'],
      ['Verify', '1'],
    ],
  )
  answer = [`${line}\n`]
  await assert.rejects(ask(false), { code: 'broken-off' })
  answer = [`${JSON.stringify({ error: { code: 'draining', detail: 'the gateway stops' } })}\n`]
  await assert.rejects(ask(false), { message: 'the gateway stops', code: 'draining' })
  assert.equal(asked[1]?.searchParams.has('Verify'), false)
})
