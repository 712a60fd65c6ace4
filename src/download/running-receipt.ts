import { createHash, type Hash } from 'node:crypto'
import { CapfleetError } from '../base/error.ts'
import type { DownloadPlan } from '../fleet/plan.ts'
import type { GatewayOptions } from '../query/gateway-options.ts'
import { BodyTail } from './body-tail.ts'
import type { DeviceReport, DownloadStatus, ReportedError } from './download-report.ts'
import {
  type Checkpoint,
  planFacts,
  type ReceiptDevice,
  type ResumeFacts,
  type StoredReceipt,
} from './receipt.ts'
import { isOrderedByTime, TimeMarks } from './time-marks.ts'

export interface ReceiptFacts {
  readonly id: string
  readonly user: string
  /** Path of the request. */
  readonly path: string
  readonly plan: DownloadPlan
  readonly options: GatewayOptions
  readonly askedHash: string
  /** The request that this one continues. */
  readonly resumedId: string | undefined
  /** Hash what is sent; somebody else may do it. */
  readonly hashes: boolean
}

/** How a download ended. */
export interface ReceiptEnd {
  readonly status: DownloadStatus
  readonly packets?: bigint | undefined
  readonly nextNs?: bigint | undefined
  readonly duplicates?: bigint | undefined
  /** Of the answer, when it was hashed on its way. */
  readonly sha256?: string | undefined
  readonly error?: ReportedError | undefined
}

/** Where in the whole body an answer begins. */
export interface BodyStart {
  readonly bytes: bigint
  /** Bytes of a file header of its own before that. */
  readonly headerBytes: number
}

/** One checkpoint more and every second one goes. */
const CHECKPOINTS_MAX = 64

/** The receipt of a download while it runs. */
export class RunningReceipt {
  readonly #facts: ReceiptFacts
  readonly #planned: ReturnType<typeof planFacts>
  readonly #startedAt = new Date()
  readonly #hash: Hash | undefined
  readonly #marks: TimeMarks | undefined
  #checkpoints: Checkpoint[] = []
  #start: BodyStart = { bytes: 0n, headerBytes: 0 }
  #bytes = 0n
  readonly #tail = new BodyTail()
  #devices: () => readonly DeviceReport[] = () => []
  #waitedMs: number | undefined
  #endedAt: Date | undefined
  #end: ReceiptEnd = { status: 'streaming' }

  constructor(facts: ReceiptFacts) {
    this.#facts = facts
    this.#planned = planFacts(facts.plan, facts.options)
    this.#hash = facts.hashes ? createHash('sha256') : undefined
    const { plan, options } = facts
    this.#marks = isOrderedByTime(plan, options) ? new TimeMarks(plan.query.timeResolution) : undefined
  }

  get bytes(): bigint {
    return this.#bytes
  }

  waited(ms: number): void {
    this.#waitedMs = ms
  }

  /** Asked whenever the receipt is written. */
  reportBy(devices: () => readonly DeviceReport[]): void {
    this.#devices = devices
  }

  /** Before the first byte: the answer is not the body from its first byte on. */
  startAt(start: BodyStart): void {
    this.#start = start
  }

  /** The next bytes of the answer. */
  sent(chunk: Uint8Array): void {
    const headerLeft = Math.max(0, this.#start.headerBytes - Number(this.#bytes))
    // Only the first chunk of a continued body may begin inside a record.
    if (this.#bytes > 0n) this.#marks?.see(chunk, this.#position, this.#devices)
    this.#bytes += BigInt(chunk.length)
    this.#tail.add(headerLeft === 0 ? chunk : chunk.subarray(headerLeft))
    this.#hash?.update(chunk)
  }

  sentSoFar(): Checkpoint {
    return { bytes: String(this.#position), overBytes: this.#tail.length, crc32: this.#tail.crc32() }
  }

  /** The SHA-256 of all that was sent, when it was asked for; nothing may be sent after it. */
  digest(): string | undefined {
    return this.#hash?.digest('hex')
  }

  end(end: ReceiptEnd): StoredReceipt {
    this.#end = end
    this.#endedAt = new Date()
    return this.now()
  }

  /** As of now; each call leaves a checkpoint. */
  now(): StoredReceipt {
    const { id, user, path, resumedId } = this.#facts
    const { status, packets, nextNs, duplicates, error } = this.#end
    this.#addCheckpoint()
    return {
      id,
      status,
      user,
      startedAt: this.#startedAt.toISOString(),
      endedAt: this.#endedAt?.toISOString() ?? null,
      waitedMs: this.#waitedMs === undefined ? null : Math.round(this.#waitedMs),
      path,
      resumedId: resumedId ?? null,
      packets: decimal(packets),
      bytes: String(this.#bytes),
      nextNs: decimal(nextNs),
      sha256: this.#end.sha256 ?? null,
      duplicates: decimal(duplicates),
      error: error ?? null,
      devices: this.#devices().map(receiptDevice),
      resume: this.#resumeFacts(),
    }
  }

  #resumeFacts(): ResumeFacts {
    return {
      ...this.#planned,
      askedHash: this.#facts.askedHash,
      checkpoints: [...this.#checkpoints],
      marks: [...(this.#marks?.all ?? [])],
      startBytes: String(this.#start.bytes),
      headerBytes: this.#start.headerBytes,
    }
  }

  /** In the whole body. */
  get #position(): bigint {
    return this.#start.bytes + this.#bytes - BigInt(this.#start.headerBytes)
  }

  #addCheckpoint(): void {
    const checkpoint = this.sentSoFar()
    if (checkpoint.overBytes === 0 || this.#checkpoints.at(-1)?.bytes === checkpoint.bytes) return
    if (this.#checkpoints.length >= CHECKPOINTS_MAX) {
      this.#checkpoints = this.#checkpoints.filter((_, index) => index % 2 === 1)
    }
    this.#checkpoints.push(checkpoint)
  }
}

/** An error as a receipt tells it; a defect is not described to callers. */
export function reportedError(error: unknown): ReportedError {
  if (error instanceof CapfleetError) return { code: error.code, detail: error.message }
  return { code: 'internal-error', detail: 'the request met a defect; the log has the details' }
}

function receiptDevice(report: DeviceReport): ReceiptDevice {
  const { missing } = report
  return {
    device: report.device,
    status: report.status,
    packets: decimal(report.packets),
    bytes: String(report.bytes),
    firstNs: decimal(report.firstNs),
    lastNs: decimal(report.lastNs),
    retries: report.retries,
    outOfOrder: report.outOfOrder,
    stalledMs: Math.round(report.stalledMs),
    clockOffsetNs: decimal(report.clockOffsetNs),
    clockErrorNs: decimal(report.clockErrorNs),
    missing: missing === undefined ? null : { fromNs: String(missing.fromNs), toNs: String(missing.toNs) },
    error: report.error ?? null,
  }
}

function decimal(value: bigint | undefined): string | null {
  return value === undefined ? null : String(value)
}
