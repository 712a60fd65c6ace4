import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { CaptureCatalogue } from '../store/capture-catalogue.ts'
import type { CaptureRecord } from '../store/capture-record.ts'
import { segmentPath } from '../store/store-paths.ts'
import { lastRemoved, names } from '../store/trimmed-record.ts'
import { type FinishedSegments, RemovalQueue } from './removal-queue.ts'
import type { HeldSegment, UnnamedFiles } from './segment-remover.ts'

const SIDE_ENDINGS = ['.idx', '.tally', '.sieve'] as const
const NANOS_PER_MS = 1_000_000n

/** Feeds a removal queue from the records of the store's captures. */
export class RecordRemovals {
  readonly queue = new RemovalQueue<HeldSegment>()
  readonly #catalogue: CaptureCatalogue
  #records: readonly CaptureRecord[] = []
  /** By capture, then by path without ending. */
  readonly #sideBytes = new Map<string, ReadonlyMap<string, number>>()

  constructor(catalogue: CaptureCatalogue) {
    this.#catalogue = catalogue
  }

  /** The records as of the last refresh(). */
  get records(): readonly CaptureRecord[] {
    return this.#records
  }

  /** Brings the queue up to date. Fails with store-unavailable. */
  async refresh(): Promise<void> {
    const records = await this.#catalogue.listFinished()
    if (records === this.#records) return
    const before = new Map(this.#records.map((record) => [record.name, record]))
    for (const record of records) {
      if (before.get(record.name) !== record) await this.#update(record)
      before.delete(record.name)
    }
    for (const name of before.keys()) {
      this.queue.delete(name)
      this.#sideBytes.delete(name)
    }
    this.#records = records
  }

  /** The files of this segment, by its path without ending, have grown. */
  async noteGrowth(path: string): Promise<void> {
    const owner = this.#records.find((record) => path.startsWith(`${this.#catalogue.folderOf(record)}/`))
    if (owner === undefined) return
    const known = new Map(this.#sideBytes.get(owner.name))
    known.delete(path)
    this.#sideBytes.set(owner.name, known)
    await this.#update(owner)
  }

  /** Bytes of segments that are being written. */
  async openBytes(): Promise<bigint> {
    let bytes = 0n
    for (const record of this.#records) {
      if (record.state !== 'active') continue
      const folder = this.#catalogue.folderOf(record)
      for (const port of await portsIn(folder)) bytes += await openBytesOf(record, folder, port)
    }
    return bytes
  }

  /** Files whose removal was on record when a recorder ended before it. */
  async *leftovers(): AsyncGenerator<UnnamedFiles> {
    for (const record of this.#records) {
      const folder = this.#catalogue.folderOf(record)
      for (const { port } of record.removed?.segments ?? []) {
        for (const number of await segmentsIn(join(folder, `cap${port}`))) {
          const isRemoved = number <= lastRemoved(record.removed, port) && !names(record, port, number)
          if (!isRemoved) continue
          const path = segmentPath(folder, port, number)
          yield { name: record.name, path, bytes: await sizeOfAll(path) }
        }
      }
    }
  }

  async #update(record: CaptureRecord): Promise<void> {
    const known = this.#sideBytes.get(record.name)
    const sideBytes = new Map<string, number>()
    const ports: FinishedSegments<HeldSegment>[] = []
    let heldBytes = 0n
    for (const { port, segments } of record.streams) {
      const held: HeldSegment[] = []
      for (const segment of segments) {
        const path = segmentPath(this.#catalogue.folderOf(record), port, segment.number)
        const side = known?.get(path) ?? Number(await sizeOfEach(path, SIDE_ENDINGS))
        sideBytes.set(path, side)
        held.push({ ...segment, sideBytes: side })
        heldBytes += segment.bytes + BigInt(side)
      }
      ports.push(finishedSegments(port, held))
    }
    this.#sideBytes.set(record.name, sideBytes)
    this.queue.update({
      name: record.name,
      createdNs: createdNs(record),
      isImport: record.type === 'import',
      isActive: record.state === 'active',
      ports,
      heldBytes,
    })
  }
}

export function createdNs({ createdAt }: CaptureRecord): bigint {
  return BigInt(Date.parse(createdAt)) * NANOS_PER_MS
}

function finishedSegments(port: number, segments: readonly HeldSegment[]): FinishedSegments<HeldSegment> {
  return {
    port,
    newest: segments.at(-1)?.number ?? 0,
    after: (number) => segments[firstAfter(segments, number)],
  }
}

/** Place of the first segment with a higher number. */
function firstAfter(segments: readonly HeldSegment[], number: number): number {
  let [begin, end] = [0, segments.length]
  while (begin < end) {
    const middle = (begin + end) >> 1
    if ((segments[middle]?.number ?? 0) > number) end = middle
    else begin = middle + 1
  }
  return begin
}

async function openBytesOf(record: CaptureRecord, folder: string, port: number): Promise<bigint> {
  const stream = record.streams.find((one) => one.port === port)
  let number = Math.max(stream?.segments.at(-1)?.number ?? 0, lastRemoved(record.removed, port))
  let bytes = 0n
  for (;;) {
    number += 1
    const found = await sizeOfAll(segmentPath(folder, port, number))
    if (found === 0n) return bytes
    bytes += found
  }
}

async function portsIn(folder: string): Promise<readonly number[]> {
  const entries = await readdir(folder).catch(() => [])
  return entries.flatMap((entry) => /^cap(\d{1,3})$/.exec(entry)?.[1] ?? []).map(Number)
}

/** Numbers of the segments of which any file is in the folder. */
async function segmentsIn(folder: string): Promise<readonly number[]> {
  const files = await readdir(folder).catch(() => [])
  return [...new Set(files.map((file) => Number.parseInt(basename(file), 10)))].filter(Number.isInteger)
}

function sizeOfAll(path: string): Promise<bigint> {
  return sizeOfEach(path, ['.pcap', ...SIDE_ENDINGS])
}

/** Bytes of these files; one that is not there takes nothing. */
async function sizeOfEach(path: string, endings: readonly string[]): Promise<bigint> {
  let bytes = 0n
  for (const ending of endings) {
    const found = await stat(`${path}${ending}`, { bigint: true }).catch(() => undefined)
    bytes += found?.size ?? 0n
  }
  return bytes
}
