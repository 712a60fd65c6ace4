/** A capture engine that writes nothing: it records its calls, and reports the counts that the test sets. */
import type { CaptureEngine } from '../../../appliance/recorder/capture/port-driver.ts'
import type { LiveCounts, LivePortCounts, LiveStream } from '../../../native/live-capture.ts'

export class ScriptedEngine implements CaptureEngine {
  readonly calls: string[] = []
  /** Makes subsequent calls fail, if they can. */
  refusal: Error | undefined
  /** Result of roll() and stop(), and of finished() until then. */
  streams: readonly LiveStream[] = []
  #counts: LiveCounts

  constructor(ports: readonly number[]) {
    this.#counts = {
      ports: ports.map(noCounts),
      flushedNs: 0n,
      pendingBytes: 0n,
      diskErrors: 0n,
      diskMessage: '',
    }
  }

  /** Sets these counts of a port; the others stay. */
  count(port: number, counts: Partial<LivePortCounts>, whole: Partial<LiveCounts> = {}): void {
    const ports = this.#counts.ports.map((entry) => (entry.port === port ? { ...entry, ...counts } : entry))
    this.#counts = { ...this.#counts, ...whole, ports }
  }

  async start(folder: string): Promise<void> {
    this.#note('start', folder)
  }

  async roll(folder: string): Promise<readonly LiveStream[]> {
    this.#note('roll', folder)
    return this.#giveStreams()
  }

  async stop(): Promise<readonly LiveStream[]> {
    this.#note('stop')
    return this.#giveStreams()
  }

  takeFinished(): readonly LiveStream[] {
    return this.streams
  }

  counts(): LiveCounts {
    return this.#counts
  }

  close(): void {
    this.calls.push('close')
  }

  #note(call: string, folder = ''): void {
    if (this.refusal !== undefined) throw this.refusal
    this.calls.push(`${call} ${folder.split('/').at(-1)}`.trim())
  }

  #giveStreams(): readonly LiveStream[] {
    const { streams } = this
    this.streams = []
    return streams
  }
}

/** An Ethernet stream with segments numbered from `first`, one for each given number of packets of 100 bytes. */
export function scriptedStream(
  port: number,
  first: number,
  packets: readonly bigint[],
  atNs = 0n,
): LiveStream {
  const segments = packets.map((count, index) => ({
    number: first + index,
    minNs: atNs + BigInt(index),
    maxNs: atNs + BigInt(index),
    packets: count,
    bytes: 24n + count * 116n,
    sideBytes: 128,
    checksum: 0,
    isFlat: false,
  }))
  return { port, linkType: 1, snaplen: 262_144, segments }
}

function noCounts(port: number): LivePortCounts {
  return {
    port,
    seenPackets: 0n,
    storedPackets: 0n,
    storedBytes: 0n,
    seenBytes: 0n,
    filteredPackets: 0n,
    ringDrops: 0n,
    diskDrops: 0n,
    pendingPackets: 0n,
    fcsErrors: 0n,
    lastPacketNs: 0n,
    sizeClasses: Array.from({ length: 12 }, () => 0n),
    hasHardwareTimestamps: false,
    isUp: true,
  }
}
