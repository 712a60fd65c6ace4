/** Stores of many small segments, in place of large ones: one packet each, one segment every ten milliseconds. */
import { mkdir, mkdtemp, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { finishedEntries } from '../../appliance/recorder/writer/finished-entries.ts'
import { HeldCapture } from '../../appliance/recorder/writer/held-capture.ts'
import { StoreWriter } from '../../appliance/recorder/writer/store-writer.ts'
import { segmentPath, storePaths } from '../../appliance/store/store-paths.ts'
import { importCaptureFiles, type StreamSummary } from '../../native/import-capture-files.ts'
import { makeOld } from '../support/disks/old-store.ts'
import { captureFacts } from '../support/packets/capture-records.ts'
import { makePacket, makePcap, makeRecord } from '../support/packets/packet-maker.ts'

export interface GrownPlan {
  readonly segments: number
  readonly captures: number
  /** "active": the newest capture is being recorded, and its last segment is not in its log. */
  readonly state: 'closed' | 'active'
  /** A store of format 1. */
  readonly isOld: boolean
}

export interface GrownStore extends AsyncDisposable, GrownPlan {
  readonly path: string
  readonly beginNs: bigint
  readonly endNs: bigint
}

const BEGIN_NS = 1_700_000_000_000_000_000n
const APART_NS = 10_000_000n
const PACKET_BYTES = 60
/** Including the file header: a second packet does not fit. */
const SEGMENT_BYTES = 24 + 16 + PACKET_BYTES + 30
const ENDINGS = ['pcap', 'idx', 'tally', 'sieve'] as const

export async function makeGrownStore(folder: string, plan: GrownPlan): Promise<GrownStore> {
  const home = await mkdtemp(join(folder, 'growth-'))
  const path = join(home, 'store')
  const remove = (): Promise<void> => rm(home, { recursive: true, force: true })
  try {
    await (await StoreWriter.open(path))[Symbol.asyncDispose]()
    const stream = await makeSegments(home, plan.segments)
    await spread(join(home, 'made'), path, stream, plan)
    if (plan.isOld) await makeOld(path)
  } catch (error) {
    await remove()
    throw error
  }
  const endNs = BEGIN_NS + BigInt(plan.segments) * APART_NS
  return { ...plan, path, beginNs: BEGIN_NS, endNs, [Symbol.asyncDispose]: remove }
}

async function makeSegments(home: string, count: number): Promise<StreamSummary> {
  const file = join(home, 'made.pcap')
  {
    await using handle = await open(file, 'w')
    await handle.write(makePcap([]))
    for (let first = 0; first < count; first += 10_000) {
      const packets = Array.from({ length: Math.min(10_000, count - first) }, (_, i) =>
        makeRecord(makePacket(BEGIN_NS + BigInt(first + i) * APART_NS, `${first + i}`, PACKET_BYTES)),
      )
      await handle.write(Buffer.concat(packets))
    }
  }
  const directory = join(home, 'made')
  await mkdir(directory)
  const { streams } = await importCaptureFiles({ files: [file], directory, segmentBytes: SEGMENT_BYTES })
  const [stream] = streams
  if (stream?.segments.length !== count) throw new Error(`${stream?.segments.length} segments, not ${count}`)
  return stream
}

/** Moves the segments into captures of equal size, in the order of time. */
async function spread(
  made: string,
  path: string,
  stream: StreamSummary,
  { segments: count, captures, state }: GrownPlan,
): Promise<void> {
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
  const each = Math.ceil(count / captures)
  for (let index = 0; index < captures; index++) {
    const segments = stream.segments
      .slice(index * each, (index + 1) * each)
      .map((segment, position) => ({ ...segment, number: position + 1 }))
    const [first] = segments
    if (first === undefined) return
    const isActive = state === 'active' && index === captures - 1
    const facts = captureFacts(`c${index}_20231114_2213`, {
      type: 'capture',
      state: isActive ? 'active' : 'closed',
      baseName: `c${index}`,
      bootId,
      createdAt: new Date(Number(first.minNs / 1_000_000n)).toISOString(),
      startNs: first.minNs,
      endNs: (segments.at(-1)?.maxNs ?? 0n) + 1n,
    })
    const folder = join(storePaths(path).captures, facts.name)
    await mkdir(folder)
    if (captures === 1) await rename(join(made, 'cap0'), join(folder, 'cap0'))
    else await moveSegments(made, folder, index * each, segments.length)
    const finished = isActive ? segments.slice(0, -1) : segments
    await HeldCapture.create(folder, facts, finishedEntries([{ ...stream, segments: finished }]))
  }
}

async function moveSegments(made: string, folder: string, from: number, count: number): Promise<void> {
  for (let position = 1; position <= count; position++) {
    const to = segmentPath(folder, 0, { number: position, isFlat: false })
    if (position === 1) await mkdir(dirname(to), { recursive: true })
    const source = segmentPath(made, 0, { number: from + position, isFlat: false })
    for (const ending of ENDINGS) await rename(`${source}.${ending}`, `${to}.${ending}`)
  }
}
