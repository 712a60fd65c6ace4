/** A capture driver that writes prepared packets on request: byte for byte a growing store. */
import { appendFile, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { CaptureDriver, CaptureTarget } from '../../../appliance/recorder/capture/capture-driver.ts'
import { segmentPath } from '../../../appliance/store/store-paths.ts'
import {
  importCaptureFiles,
  type SegmentSummary,
  type StreamSummary,
} from '../../../native/import-capture-files.ts'
import { type LiveCounts, type LivePortCounts, SIZE_CLASSES } from '../../../native/live-capture.ts'
import type { PcapRecord } from '../packets/pcap-records.ts'
import { makePcapng } from '../packets/pcapng-maker.ts'

const INDEX_HEADER_BYTES = 64
const ENTRY_BYTES = 64

/** One block of a prepared segment, as described by its index entry. */
interface Block {
  readonly port: number
  readonly segment: number
  readonly stem: string
  readonly entry: Buffer
  readonly offset: number
  readonly bytes: number
  readonly packets: bigint
  readonly minNs: bigint
  readonly maxNs: bigint
  readonly index: number
}

export class ScriptedDriver implements CaptureDriver, AsyncDisposable {
  readonly ports: readonly number[]
  readonly #folder: string
  /** The waiting blocks of each port, in recording order. */
  readonly #waiting: Map<number, Block[]>
  readonly #written: Block[] = []
  #target: CaptureTarget | undefined
  #flushedNs = 0n
  #timesAsked = 0

  private constructor(folder: string, waiting: Map<number, Block[]>) {
    this.#folder = folder
    this.#waiting = waiting
    this.ports = [...waiting.keys()]
  }

  /** `ports[n]` are the packets of port n in time order; each small segment has about `segmentBytes`. */
  static async make(
    ports: readonly (readonly PcapRecord[])[],
    segmentBytes: number,
  ): Promise<ScriptedDriver> {
    const folder = await mkdtemp(join(tmpdir(), 'capfleet-test-'))
    const waiting = new Map<number, Block[]>()
    for (const [port, records] of ports.entries()) {
      const file = join(folder, `${port}.pcapng`)
      const directory = join(folder, String(port))
      // Packets of interface n are of port n, also in the indexes.
      const ofPort = records.map((record) => ({ ...record, port }))
      await writeFile(file, makePcapng(port + 1, ofPort))
      await mkdir(directory)
      const { streams } = await importCaptureFiles({ files: [file], directory, segmentBytes })
      const segments = streams.flatMap((stream) => stream.segments.map(({ number }) => number))
      const blocks = await Promise.all(segments.map((number) => blocksOf(directory, port, number)))
      waiting.set(port, blocks.flat())
    }
    return new ScriptedDriver(folder, waiting)
  }

  async start(target: CaptureTarget): Promise<void> {
    this.#target = target
    this.#written.length = 0
    for (const port of this.ports) await mkdir(join(target.folder, `cap${port}`), { recursive: true })
  }

  /** Writes and indexes everything of these ports before `ns`, then reports it as flushed. */
  async flushUntil(ns: bigint, ports: readonly number[] = this.ports): Promise<void> {
    for (const port of ports) {
      const blocks = this.#waiting.get(port) ?? []
      while (blocks[0] !== undefined && blocks[0].minNs < ns) await this.#write(blocks.shift() as Block)
    }
    this.#flushedNs = ns
  }

  /** Writes the next block of a port, whatever its time. */
  async writeNext(port: number): Promise<void> {
    const block = this.#waiting.get(port)?.shift()
    if (block !== undefined) await this.#write(block)
  }

  async roll(target: CaptureTarget): Promise<readonly StreamSummary[]> {
    const streams = await this.stop()
    await this.start(target)
    return streams
  }

  async stop(): Promise<readonly StreamSummary[]> {
    const ports = this.ports.filter((port) => this.#written.some((block) => block.port === port))
    return ports.map((port) => ({
      port,
      linkType: 1,
      snaplen: 262_144,
      segments: this.#segmentsOf(port),
    }))
  }

  /** All segments of the running capture count as open. */
  takeFinished(): readonly StreamSummary[] {
    return []
  }

  /** How often the flushed time was requested. */
  get timesAsked(): number {
    return this.#timesAsked
  }

  counts(): LiveCounts {
    this.#timesAsked += 1
    const ports = this.ports.map((port) => this.#countsOf(port))
    return { ports, flushedNs: this.#flushedNs, pendingBytes: 0n, diskErrors: 0n, diskMessage: '' }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }

  /** Data, tally, index: in the order given in FORMAT.md. A capture's first segment is number 1. */
  async #write(block: Block): Promise<void> {
    if (this.#target === undefined) throw new Error('no capture runs')
    const first = this.#written.find(({ port }) => port === block.port)?.segment ?? block.segment
    const number = block.segment - first + 1
    const stem = segmentPath(this.#target.folder, block.port, { number, isFlat: false })
    await mkdir(dirname(stem), { recursive: true })
    const packets = await readFile(`${block.stem}.pcap`)
    if (block.index === 0) {
      await writeFile(`${stem}.pcap`, packets.subarray(0, block.offset))
      const index = await readFile(`${block.stem}.idx`)
      await writeFile(`${stem}.idx`, index.subarray(0, INDEX_HEADER_BYTES))
      await copyFile(`${block.stem}.tally`, `${stem}.tally`)
    }
    await appendFile(`${stem}.pcap`, packets.subarray(block.offset, block.offset + block.bytes))
    await appendFile(`${stem}.idx`, block.entry)
    this.#written.push(block)
  }

  /** Nothing is lost or filtered. */
  #countsOf(port: number): LivePortCounts {
    const written = this.#written.filter((block) => block.port === port)
    const packets = written.reduce((sum, block) => sum + block.packets, 0n)
    const bytes = written.reduce((sum, block) => sum + BigInt(block.bytes), 0n)
    return {
      port,
      seenPackets: packets,
      storedPackets: packets,
      storedBytes: bytes,
      seenBytes: bytes,
      filteredPackets: 0n,
      ringDrops: 0n,
      diskDrops: 0n,
      pendingPackets: 0n,
      fcsErrors: 0n,
      lastPacketNs: written.at(-1)?.maxNs ?? 0n,
      sizeClasses: SIZE_CLASSES.map(() => 0n),
      hasHardwareTimestamps: false,
      isUp: true,
    }
  }

  #segmentsOf(port: number): SegmentSummary[] {
    const blocks = this.#written.filter((block) => block.port === port)
    const numbers = [...new Set(blocks.map(({ segment }) => segment))]
    return numbers.map((segment, position) => {
      const own = blocks.filter((block) => block.segment === segment)
      const last = own.at(-1) as Block
      return {
        number: position + 1,
        // A port's packets are in time order.
        minNs: own[0]?.minNs ?? last.minNs,
        maxNs: last.maxNs,
        packets: own.reduce((sum, { packets }) => sum + packets, 0n),
        bytes: BigInt(last.offset + last.bytes),
        isFlat: false,
        sideBytes: INDEX_HEADER_BYTES + ENTRY_BYTES * own.length,
        checksum: 0,
      }
    })
  }
}

async function blocksOf(directory: string, port: number, segment: number): Promise<Block[]> {
  const stem = segmentPath(directory, port, { number: segment, isFlat: false })
  const index = await readFile(`${stem}.idx`)
  const blocks: Block[] = []
  for (let at = INDEX_HEADER_BYTES; at < index.length; at += ENTRY_BYTES) {
    const entry = index.subarray(at, at + ENTRY_BYTES)
    blocks.push({
      port,
      segment,
      stem,
      entry,
      offset: Number(entry.readBigUInt64LE(0)),
      minNs: entry.readBigUInt64LE(8),
      maxNs: entry.readBigUInt64LE(16),
      bytes: entry.readUInt32LE(24),
      packets: BigInt(entry.readUInt32LE(28)),
      index: blocks.length,
    })
  }
  return blocks
}
