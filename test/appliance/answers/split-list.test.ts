// /stream/ssize and /stream/stime: the splits of a view together are the capture, packet for packet.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { makeCaptureFolder } from '../../../appliance/recorder/writer/capture-folder.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { SIZE_VIEWS, TIME_VIEWS } from '../../../src/shared/query/split-views.ts'
import { captureFacts } from '../../support/packets/capture-records.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { makePcapng, type PortRecord } from '../../support/packets/pcapng-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const random = seededRandom()
const START_NS = 1_790_000_000_123_456_789n
const SECOND_NS = 1_000_000_000n

interface SplitItem {
  readonly id: string
  readonly Path: string
  readonly PCAP: string
  readonly StartTS: string
  readonly StopTS: string
  readonly Size: number
  readonly ByteCnt: string
  readonly PacketCnt: number
  readonly PacketCntExact: string
  readonly Date: number
  readonly Type: string
  readonly ValidPct: number
  readonly Desc: string
}

let appliance: TempAppliance
/** 3,000 packets of 9,000 bytes on two ports over six hours, with pauses and many equal times. */
const records: PortRecord[] = []

before(async () => {
  appliance = await startTempAppliance({ segmentBytes: 1 << 20 })
  let ns = START_NS
  for (let index = 0; index < 3_000; index++) {
    const pause = index === 0 ? 0 : random.integer(0, 3)
    if (pause === 3) ns += BigInt(random.integer(1, 28)) * SECOND_NS
    else if (pause > 0) ns += BigInt(random.integer(1, 3))
    const packet = makePacket(ns, `split ${index}`, random.integer(8_000, 9_000))
    records.push({ ...packet, port: random.integer(0, 1) })
  }
  const path = join(appliance.folder, 'splits.pcapng')
  await writeFile(path, makePcapng(2, records))
  await appliance.importFiles('splits_20261120_0930', path)
  const empty = captureFacts('empty', { startNs: 0n, endNs: 0n })
  assert.ok(await makeCaptureFolder(storePaths(appliance.storePath), empty))
  const years = [0n, 40_000_000n * SECOND_NS].map((later) => makePacket(START_NS + later, 'far'))
  await writeFile(join(appliance.folder, 'years.pcap'), makePcap(years))
  await appliance.importFiles('years', join(appliance.folder, 'years.pcap'))
})
after(() => appliance[Symbol.asyncDispose]())

async function list(path: string): Promise<{ items: SplitItem[]; body: Record<string, unknown> }> {
  const answer = await appliance.get(path)
  assert.equal(answer.status, 200, answer.body.toString())
  const body = answer.json()
  return { items: body.List as SplitItem[], body }
}

async function linesOf(path: string): Promise<string[]> {
  const answer = await appliance.get(path)
  assert.equal(answer.status, 200, answer.body.toString())
  return recordLines(readPcap(answer.body).records)
}

function checkAdjacent(items: readonly SplitItem[]): void {
  const last = records.at(-1)?.ns ?? 0n
  assert.equal(items[0]?.StartTS, String(START_NS))
  assert.equal(items.at(-1)?.StopTS, String(last + 1n))
  for (const [index, item] of items.entries()) {
    assert.equal(item.id, String(index))
    assert.ok(BigInt(item.StartTS) < BigInt(item.StopTS))
    if (index > 0) assert.ok(BigInt(item.StartTS) >= BigInt(items[index - 1]?.StopTS ?? 0))
  }
}

for (const [path, view] of [
  ['ssize', 'split_10MB'],
  ['ssize', 'split_100MB'],
  ['stime', 'split_10min'],
  ['stime', 'split_1hour'],
] as const) {
  test(`the splits of ${view} are the whole capture, with exact counts (SEED=${random.seed})`, async () => {
    const { items, body } = await list(`/stream/${path}?StreamName=splits&StreamView=${view}&&`)
    assert.deepEqual(
      { ...body, List: [] },
      { Path: `/capture/splits_20261120_0930/${view}`, SplitFile: true, List: [] },
    )
    checkAdjacent(items)
    const lines: string[] = []
    for (const { PCAP, PacketCnt, Size, ByteCnt } of items) {
      assert.match(PCAP, /^\/pcap\/splittime\?StreamName=splits_20261120_0930&Start=\d+ULL&Stop=\d+ULL&&$/)
      const answer = await appliance.get(PCAP)
      const part = readPcap(answer.body).records
      assert.equal(PacketCnt, part.length)
      assert.deepEqual([Size, ByteCnt], [answer.body.length - 24, String(answer.body.length - 24)])
      lines.push(...recordLines(part))
    }
    const whole = await linesOf('/pcap/single?StreamName=splits')
    assert.equal(whole.length, records.length)
    assert.deepEqual(lines, whole)
  })
}

test('splits by size have about that size', async () => {
  const { items } = await list('/stream/ssize?StreamName=splits&StreamView=split_10MB')
  assert.ok(items.length >= 2, 'the capture has more than 20 MB')
  for (const { Size } of items.slice(0, -1)) assert.ok(Size > 9e6 && Size < 11e6, String(Size))
})

for (const [path, views] of [
  ['ssize', SIZE_VIEWS],
  ['stime', TIME_VIEWS],
] as const) {
  test(`every view of /stream/${path} counts each packet once`, async () => {
    for (const [view, unit] of Object.entries(views)) {
      const { items } = await list(`/stream/${path}?StreamName=splits&StreamView=${view}`)
      const sum = items.reduce((packets, { PacketCnt }) => packets + PacketCnt, 0)
      assert.equal(sum, records.length, view)
      if (path === 'ssize') continue
      const cuts = items.slice(1).map(({ StartTS }) => BigInt(StartTS) % unit)
      assert.ok(
        cuts.every((rest) => rest === 0n),
        `${view} cuts at multiples of its unit`,
      )
    }
  })
}

test('the path of a split is its start in the device’s zone, to the nanosecond', async () => {
  const { items } = await list('/stream/stime?StreamName=splits&StreamView=split_12hour')
  assert.equal(items[0]?.Path, '20260921_14:13:20.123.456.789')
})

test('an empty capture has no splits', async () => {
  assert.deepEqual((await list('/stream/ssize?StreamName=empty')).items, [])
  assert.deepEqual((await list('/stream/stime?StreamName=empty')).items, [])
})

test('pages of Limit put together are the whole list', async () => {
  for (const view of ['ssize?StreamView=split_10MB', 'stime?StreamView=split_10min']) {
    const whole = (await list(`/stream/${view}&StreamName=splits`)).items
    const pages: SplitItem[] = []
    let next = '0'
    for (let page = 0; next !== '' && page < 100; page++) {
      const { items, body } = await list(`/stream/${view}&StreamName=splits&Limit=2&After=${next}`)
      assert.ok(items.length <= 2)
      pages.push(...items)
      next = typeof body.Next === 'string' ? body.Next : ''
    }
    assert.deepEqual(
      pages.map((item) => ({ ...item, id: '' })),
      whole.map((item) => ({ ...item, id: '' })),
    )
  }
})

test('a list of too many splits is refused, unless it is asked for in pages', async () => {
  const refused = await appliance.get('/stream/stime?StreamName=years&StreamView=split_1sec')
  assert.deepEqual([refused.status, refused.json().param, refused.json().Status], [400, 'StreamView', false])
  const { items, body } = await list('/stream/stime?StreamName=years&StreamView=split_1sec&Limit=1000')
  assert.deepEqual([items.length, typeof body.Next], [1, 'string'])
  const hours = await list('/stream/stime?StreamName=years&StreamView=split_1hour')
  assert.deepEqual(
    hours.items.map(({ PacketCnt, PacketCntExact, Type }) => [PacketCnt, PacketCntExact, Type]),
    [
      [1, '1', 'import'],
      [1, '1', 'import'],
    ],
    'hours without packets are left out',
  )
})

test('mistakes are named', async () => {
  for (const [path, param] of [
    ['/stream/ssize', 'StreamName'],
    ['/stream/ssize?StreamName=splits&StreamView=split_1sec', 'StreamView'],
    ['/stream/stime?StreamName=splits&StreamView=split_1GB', 'StreamView'],
    ['/stream/stime?StreamName=splits&Limit=0', 'Limit'],
    ['/stream/stime?StreamName=splits&After=x', 'After'],
  ] as const) {
    const answer = await appliance.get(path)
    assert.deepEqual([answer.status, answer.json().param, answer.json().Status], [400, param, false], path)
  }
  assert.equal((await appliance.get('/stream/stime?StreamName=nosuch')).json().code, 'unknown-capture')
})

test('a capture without packets is listed, but in no range of time', async () => {
  const names = async (query: string): Promise<readonly string[]> => {
    const { List } = (await appliance.get(`/stream/list${query}`)).json() as {
      readonly List: readonly { readonly StreamName: string }[]
    }
    return List.map(({ StreamName }) => StreamName)
  }
  assert.ok((await names('')).includes('empty'))
  assert.ok(!(await names('?From=0')).includes('empty'))
  assert.equal((await appliance.get('/api/v1/pcap/single?StreamName=empty')).body.length, 24)
})
