/** Placeholder of the contract until the engine is merged. */
import { CapfleetError } from '../src/base/error.ts'

export interface LivePort {
  readonly port: number
  readonly interfaceName: string
  readonly threads: number
  readonly ringBytes: number
  readonly snaplen: number
  readonly isPromiscuous: boolean
  readonly filter?: Uint8Array | undefined
}

export interface LiveCaptureOptions {
  readonly ports: readonly LivePort[]
  readonly segmentBytes: number
  readonly syncIntervalMs: number
  readonly queueBytes: number
}

export interface LivePortCounts {
  readonly port: number
  readonly seenPackets: bigint
  readonly storedPackets: bigint
  readonly storedBytes: bigint
  readonly seenBytes: bigint
  readonly filteredPackets: bigint
  readonly ringDrops: bigint
  readonly diskDrops: bigint
  readonly pendingPackets: bigint
  readonly fcsErrors: bigint
  readonly lastPacketNs: bigint
  readonly sizeClasses: readonly bigint[]
  readonly hasHardwareTimestamps: boolean
  readonly isUp: boolean
}

export interface LiveCounts {
  readonly ports: readonly LivePortCounts[]
  readonly flushedNs: bigint
  readonly pendingBytes: bigint
  readonly diskErrors: bigint
  readonly diskMessage: string
}

export interface LiveSegment {
  readonly number: number
  readonly minNs: bigint
  readonly maxNs: bigint
  readonly packets: bigint
  readonly bytes: bigint
}

export interface LiveStream {
  readonly port: number
  readonly linkType: number
  readonly snaplen: number
  readonly segments: readonly LiveSegment[]
}

export interface RecoveredStream extends LiveStream {
  readonly cutBytes: bigint
  readonly recoveredPackets: bigint
}

export class LiveCapture {
  static open(_options: LiveCaptureOptions): Promise<LiveCapture> {
    return Promise.reject(new CapfleetError('capture-unavailable', 'no engine'))
  }
  start(_folder: string): Promise<void> {
    return Promise.resolve()
  }
  roll(_folder: string): Promise<readonly LiveStream[]> {
    return Promise.resolve([])
  }
  stop(): Promise<readonly LiveStream[]> {
    return Promise.resolve([])
  }
  finished(): readonly LiveStream[] {
    return []
  }
  counts(): LiveCounts {
    return { ports: [], flushedNs: 0n, pendingBytes: 0n, diskErrors: 0n, diskMessage: '' }
  }
  close(): void {}
}

export function recoverStream(_options: {
  readonly folder: string
  readonly port: number
  readonly isSameBoot: boolean
}): Promise<RecoveredStream | undefined> {
  return Promise.resolve(undefined)
}
