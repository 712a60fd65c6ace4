// The counts of splits come from the tallies of the store: exact, and without reading packets.
import assert from 'node:assert/strict'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { SIZE_VIEWS, TIME_VIEWS } from '../../../src/shared/query/split-views.ts'
import { makePacket } from '../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap } from '../../support/packets/pcap-records.ts'
import { makePcapng, type PortRecord } from '../../support/packets/pcapng-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const random = seededRandom()
const START_NS = 1_790_000_000_123_456_789n
const SECOND_NS = 1_000_000_000n
const MILLISECOND_NS = 1_000_000n
const PORTS = 3
const VIEWS = [
  ...Object.keys(SIZE_VIEWS).map((view) => ({ path: 'ssize', view })),
  ...Object.keys(TIME_VIEWS).map((view) => ({ path: 'stime', view })),
]

interface SplitItem {
  readonly StartTS: string
  readonly StopTS: string
  readonly PacketCnt: number
  readonly ByteCnt: string
}

let appliance: TempAppliance
/** The packets of a download of the whole capture, in its order. */
let downloaded: readonly PcapRecord[] = []

/** Bursts of many packets in a millisecond, single packets, and pauses of up to minutes, over half a day. */
function makeTraffic(): PortRecord[] {
  const records: PortRecord[] = []
  let ns = START_NS
  const add = (gapNs: number, length: number): void => {
    ns += BigInt(gapNs)
    const packet = makePacket(ns, `tally ${records.length}`, length)
    records.push({ ...packet, port: random.integer(0, PORTS - 1) })
  }
  for (let burst = 0; burst < 250; burst++) {
    for (let i = random.integer(40, 120); i > 0; i--)
      add(random.integer(0, 60_000), random.integer(1_000, 1_500))
    if (burst % 10 === 0) {
      for (let i = 0; i < 50; i++) add(random.integer(1, 3_000_000_000), random.integer(60, 100))
    }
    ns += BigInt(random.pick([1, 2_000_000, 300_000_000, 400_000_000_000])) * BigInt(random.integer(1, 2))
    ns += BigInt(random.integer(0, 999_999_999))
  }
  ns += 43_200n * SECOND_NS
  add(0, 60)
  return records
}

/** Swaps neighbours and moves the first third to the end, so that an import has to sort. */
function disorder(records: readonly PortRecord[]): PortRecord[] {
  const third = Math.floor(records.length / 3)
  const moved = [...records.slice(third), ...records.slice(0, third)]
  for (let at = 0; at + 1 < moved.length; at += random.integer(1, 5)) {
    moved.splice(at, 2, ...moved.slice(at, at + 2).reverse())
  }
  return moved
}

before(async () => {
  appliance = await startTempAppliance({ segmentBytes: 1 << 22 })
  const path = join(appliance.folder, 'tallies.pcapng')
  await writeFile(path, makePcapng(PORTS, disorder(makeTraffic())))
  await appliance.importFiles('tallies', path)
  downloaded = readPcap((await appliance.get('/pcap/single?StreamName=tallies')).body).records
})
after(() => appliance[Symbol.asyncDispose]())

async function storeFiles(ending: string): Promise<string[]> {
  const folder = join(appliance.storePath, 'captures', 'tallies')
  const names = await readdir(folder, { recursive: true })
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name))
}

/** Hides the files of the store with this ending while `work` runs. */
async function without<Result>(ending: string, work: () => Promise<Result>): Promise<Result> {
  const files = await storeFiles(ending)
  assert.ok(files.length > PORTS, `${files.length} files end with ${ending}`)
  for (const file of files) await rename(file, `${file}.away`)
  try {
    return await work()
  } finally {
    for (const file of files) await rename(`${file}.away`, file)
  }
}

async function list(path: string, view: string): Promise<SplitItem[]> {
  const answer = await appliance.get(`/stream/${path}?StreamName=tallies&StreamView=${view}`)
  assert.equal(answer.status, 200, `${view}: ${answer.body.toString()}`)
  return answer.json().List as SplitItem[]
}

async function listEveryView(): Promise<SplitItem[][]> {
  const lists: SplitItem[][] = []
  for (const { path, view } of VIEWS) lists.push(await list(path, view))
  return lists
}

/** The split's figures, counted packet by packet from the download. */
function countDownloaded({ StartTS, StopTS }: SplitItem): Pick<SplitItem, 'PacketCnt' | 'ByteCnt'> {
  const [startNs, stopNs] = [BigInt(StartTS), BigInt(StopTS)]
  const inside = downloaded.filter(({ ns }) => startNs <= ns && ns < stopNs)
  const bytes = inside.reduce((sum, { captured }) => sum + 16 + captured.byteLength, 0)
  return { PacketCnt: inside.length, ByteCnt: String(bytes) }
}

test(`every view counts its splits exactly while no packet can be read (SEED=${random.seed})`, async () => {
  const lists = await without('.pcap', async () => {
    return await listEveryView()
  })
  for (const [index, items] of lists.entries()) {
    const view = VIEWS[index]?.view
    for (const item of items) {
      const { PacketCnt, ByteCnt } = item
      assert.deepEqual({ PacketCnt, ByteCnt }, countDownloaded(item), `${view} from ${item.StartTS}`)
    }
    const packets = items.reduce((sum, { PacketCnt }) => sum + PacketCnt, 0)
    assert.equal(packets, downloaded.length, view)
    const cuts = items.slice(1).map(({ StartTS }) => BigInt(StartTS) % MILLISECOND_NS)
    assert.ok(
      cuts.every((rest) => rest === 0n),
      `${view} cuts at whole milliseconds`,
    )
  }
  assert.ok((lists[0]?.length ?? 0) >= 3, 'the capture has more than 20 MB')
  assert.ok((lists.at(-1)?.length ?? 0) >= 2, 'the capture reaches over half a day')
})

test('without tallies the same lists need the packets, and are equal', async () => {
  const lists = await listEveryView()
  await without('.tally', async () => {
    assert.deepEqual(await listEveryView(), lists)
    await without('.pcap', async () => {
      for (const { path, view } of [VIEWS[0], VIEWS.at(-2)] as typeof VIEWS) {
        const items = await list(path, view)
        assert.equal(
          items.reduce((sum, { PacketCnt }) => sum + PacketCnt, 0),
          0,
          `${view}: none can be had`,
        )
      }
    })
  })
})

test('a damaged tally changes no count', async () => {
  const lists = await listEveryView()
  for (const file of await storeFiles('.tally')) {
    const bytes = await readFile(file)
    for (let at = 0; at < bytes.length; at += random.integer(1, 400)) bytes[at] = random.integer(0, 255)
    await writeFile(file, bytes.subarray(0, bytes.length - random.integer(0, 100)))
  }
  assert.deepEqual(await listEveryView(), lists)
})
