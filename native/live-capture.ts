/**
 * Live capture: packets of network interfaces into the segments of a capture, on the engine's own threads. Nothing
 * here waits for the disk on this thread.
 */
import assert from 'node:assert/strict'
import { CapfleetError } from '../src/shared/base/error.ts'
import { MAX_CAPTURED_LENGTH } from '../src/shared/pcap/pcap-sizes.ts'
import type { StreamSummary } from './import-capture-files.ts'
import { loadAddon } from './load-addon.ts'

export interface LivePort {
  /** 0 to 7: capN. */
  readonly port: number
  readonly interfaceName: string
  /** If more than 1, the kernel distributes the packets among this many threads, by flow. */
  readonly threads: number
  /** Size of the kernel ring of each thread; whole MiB, at least 2. */
  readonly ringBytes: number
  /** 1 to 262144: bytes kept of each packet. */
  readonly snaplen: number
  readonly isPromiscuous: boolean
  /** A cBPF program from the compile helper for Ethernet; it sees whole packets with their VLAN tags. */
  readonly filter?: Uint8Array | undefined
}

export interface LiveCaptureOptions {
  readonly ports: readonly LivePort[]
  /** Segments roll before a block would make them larger than this. */
  readonly segmentBytes: number
  /** Captured packets are safe on disk after this time, while the disk keeps up. */
  readonly syncIntervalMs: number
  /** Memory between the capture threads and the disk, for all ports; at least 1 MiB for each thread. */
  readonly queueBytes: number
}

/** RMON size classes in the order of LivePortCounts.sizeClasses, as named in port_stats after `Pkt_`. */
export const SIZE_CLASSES = [
  'RUNT',
  '64',
  '65_127',
  '128_255',
  '256_511',
  '512_1023',
  '1024_1518',
  '1024_2047',
  '2048_4095',
  '4096_8191',
  '8192_9216',
  'OVER',
] as const

/** seenPackets = storedPackets + filteredPackets + ringDrops + diskDrops + pendingPackets, always. */
export interface LivePortCounts {
  readonly port: number
  /** Packets delivered by the kernel. */
  readonly seenPackets: bigint
  /** Safe on disk, with their index entry. */
  readonly storedPackets: bigint
  /** Size of these as PCAP records. */
  readonly storedBytes: bigint
  /** Original lengths of the packets that reached the recorder. */
  readonly seenBytes: bigint
  /** Dropped by the capture filter. */
  readonly filteredPackets: bigint
  /** The kernel's ring was full, because the capture threads got too little CPU time. */
  readonly ringDrops: bigint
  /** The memory was full because the disk was too slow; or the disk failed until the capture's end. */
  readonly diskDrops: bigint
  /** Packets in memory that are not safe yet. */
  readonly pendingPackets: bigint
  /** Frames with a wrong frame check sequence that the interface has seen since the start. */
  readonly fcsErrors: bigint
  /** 0n = none. */
  readonly lastPacketNs: bigint
  /**
   * In the order of SIZE_CLASSES. By length on the wire: the FCS, which the kernel does not provide, counts as 4
   * bytes. 1024_1518 and 1024_2047 overlap, as their names say.
   */
  readonly sizeClasses: readonly bigint[]
  readonly hasHardwareTimestamps: boolean
  readonly isUp: boolean
}

/** Since start() of the running capture; kept after stop(). */
export interface LiveCounts {
  readonly ports: readonly LivePortCounts[]
  /**
   * Every packet that arrived when the clock showed less is safe on disk. Advances with the clock on an idle wire, and
   * goes back with a clock that is set back. 0n = not known yet.
   */
  readonly flushedNs: bigint
  readonly pendingBytes: bigint
  /** Failed disk operations; each is retried. */
  readonly diskErrors: bigint
  /** Message of the latest, '' = none. */
  readonly diskMessage: string
}

/** The highest number that a segment of each port has had, by port; ports without one are omitted. */
export type LastNumbers = ReadonlyMap<number, number>

/** The segments of one port; ports without packets have none and are omitted. */
export type LiveStream = StreamSummary

export interface RecoveryOptions {
  /** The folder of the capture. */
  readonly folder: string
  readonly port: number
  /** Whether the machine has not been rebooted since the writer ended (boot_id of /proc/sys/kernel/random). */
  readonly isSameBoot: boolean
  /**
   * The last segment of the port that is known to be finished: it and earlier ones are not modified. Default: 0, none
   * is.
   */
  readonly afterNumber?: number | undefined
}

export interface RecoveredStream {
  /** What the port has after `afterNumber`; undefined if there is no packet. */
  readonly stream?: LiveStream | undefined
  /** Bytes cut off segment files: after the last complete record, or after a power loss after what was synced. */
  readonly cutBytes: bigint
  /** Packets that were written but had no index entry yet. */
  readonly recoveredPackets: bigint
  /** Blocks whose index entry was damaged, and was rebuilt from the packets. */
  readonly rebuiltBlocks: bigint
  /** Blocks of which only the position is known: downloads leave them out and count them as corrupt. */
  readonly damagedBlocks: bigint
  /** Names the segments with rebuilt or damaged blocks; '' if there are none. */
  readonly message: string
}

interface NativeLiveCapture {
  start(folder: string, lastNumbers: readonly (readonly [port: number, number: number])[]): Promise<void>
  roll(folder: string): Promise<readonly LiveStream[]>
  stop(): Promise<readonly LiveStream[]>
  takeFinished(): readonly LiveStream[]
  counts(): LiveCounts
  /** Nothing may be called after this. */
  close(): void
}

const engine = loadAddon<{
  openLiveCapture(options: LiveCaptureOptions): Promise<NativeLiveCapture>
  recoverStream(options: Required<RecoveryOptions>): Promise<RecoveredStream>
}>('capfleet')

/**
 * Repairs the segments of a port whose recorder ended without stop(), those after `afterNumber`. Damaged index entries
 * are rebuilt from the packets; only the newest segment can be truncated, after its last complete entry. Takes as long
 * as reading the indexes of these segments; may be interrupted and called again. Rejects with store-full,
 * store-unavailable, or with store-corrupt if the link type of a segment cannot be determined.
 */
export async function recoverStream(options: RecoveryOptions): Promise<RecoveredStream> {
  const { afterNumber = 0 } = options
  checkRange('port', options.port, 0, 255)
  checkRange('afterNumber', afterNumber, 0, MAX_SEGMENT_NUMBER)
  return await engine.recoverStream({ ...options, afterNumber })
}

/** One capture at a time: start(), any number of roll(), stop(), and again. */
export class LiveCapture {
  readonly #native: NativeLiveCapture
  #state: 'idle' | 'starting' | 'capturing' | 'closed' = 'idle'

  private constructor(native: NativeLiveCapture) {
    this.#native = native
  }

  /**
   * Opens every interface; nothing is captured yet. Rejects with capture-unavailable, whose message includes the fix
   * (no CAP_NET_RAW, no such interface, not Ethernet), bad-bpf or bad-parameter.
   */
  static async open(options: LiveCaptureOptions): Promise<LiveCapture> {
    checkOptions(options)
    return new LiveCapture(await engine.openLiveCapture(options))
  }

  /**
   * Captures into cap<port>/ of an existing folder. Segment numbers continue after those that exist, and after
   * `lastNumbers`, for a folder from which segments were removed. Every packet that arrives after it resolves is seen.
   */
  async start(folder: string, lastNumbers: LastNumbers = new Map()): Promise<void> {
    assert(this.#state === 'idle', 'start() needs an open capture that is not running')
    this.#state = 'starting'
    await this.#native.start(folder, [...lastNumbers])
    if (this.#state === 'starting') this.#state = 'capturing'
  }

  /**
   * Packets go to another folder from one block on. Resolves with the segments that have ended since start() or the
   * previous roll and were not taken, when they are safe; waits while the disk fails.
   */
  async roll(folder: string): Promise<readonly LiveStream[]> {
    assert(this.#state === 'capturing', 'roll() needs a running capture')
    return await this.#native.roll(folder)
  }

  /**
   * Resolves like roll(), when everything that arrived before is safe. If the disk fails for 5 s, what it has not
   * accepted is counted in diskDrops.
   */
  async stop(): Promise<readonly LiveStream[]> {
    assert(this.#state === 'capturing', 'stop() needs a running capture')
    this.#state = 'idle'
    return await this.#native.stop()
  }

  /** Segments of the running capture that have ended since the last call. The rest is returned by roll() or stop(). */
  takeFinished(): readonly LiveStream[] {
    return this.#state === 'closed' ? [] : this.#native.takeFinished()
  }

  /** Cheap. REQUIRES: not closed. */
  counts(): LiveCounts {
    assert(this.#state !== 'closed', 'counts() needs an open capture')
    return this.#native.counts()
  }

  /** Ends at once, in the background; packets that are not safe may be lost. May be called again. */
  close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#native.close()
  }
}

const MIN_QUEUE_BYTES_PER_THREAD = 2 ** 20
const MAX_SEGMENT_NUMBER = 2 ** 32 - 2

function checkOptions({ ports, segmentBytes, syncIntervalMs, queueBytes }: LiveCaptureOptions): void {
  checkRange('segmentBytes', segmentBytes, 1)
  checkRange('syncIntervalMs', syncIntervalMs, 1, 3_600_000)
  for (const { port, threads, ringBytes, snaplen } of ports) {
    checkRange('port', port, 0, 7)
    checkRange('threads', threads, 1, 64)
    checkRange('ringBytes', ringBytes, 1)
    checkRange('snaplen', snaplen, 1, MAX_CAPTURED_LENGTH)
  }
  if (new Set(ports.map(({ port }) => port)).size !== ports.length) {
    throw new CapfleetError('bad-parameter', 'two ports have the same number', { param: 'port' })
  }
  const threads = ports.reduce((sum, port) => sum + port.threads, 0)
  checkRange('queueBytes', queueBytes, MIN_QUEUE_BYTES_PER_THREAD * Math.max(1, threads))
}

function checkRange(param: string, value: number, min: number, max = Number.MAX_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return
  throw new CapfleetError('bad-parameter', `${param} must be an integer from ${min} to ${max}`, { param })
}
