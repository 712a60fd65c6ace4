import { createHash, type Hash } from 'node:crypto'
import { CapfleetError } from '../../shared/base/error.ts'
import type { GatewayOptions } from '../../shared/query/download/gateway-options.ts'
import type { Body, BodyResult, DeviceResult, ReportedError } from '../fetch/body/body.ts'
import type { DownloadPlan } from '../fleet/plan/plan.ts'
import { type DownloadStatus, type ReceiptDevice, resumeFactsOf, type StoredReceipt } from './receipt.ts'
import type { ResumedRequest } from './resume-request.ts'

export interface ReceiptFacts {
  readonly id: string
  readonly user: string
  /** Path of the request. */
  readonly path: string
  readonly plan: DownloadPlan
  readonly options: GatewayOptions
  readonly askedHash: string
  /** The request that this one continues. */
  readonly resumed: ResumedRequest | undefined
}

/** How a download ended. */
export interface ReceiptEnd {
  readonly status: DownloadStatus
  /** The result of a complete body. */
  readonly result?: BodyResult | undefined
  readonly error?: ReportedError | undefined
}

/** The receipt of a download while it runs. */
export class RunningReceipt {
  readonly #facts: ReceiptFacts
  readonly #planned: ReturnType<typeof resumeFactsOf>
  readonly #startedAt = new Date()
  readonly #hash: Hash | undefined
  #sha256: string | undefined
  #body: Body | undefined
  #bytes = 0n
  #waitedMs: number | undefined
  #endedAt: Date | undefined
  #end: ReceiptEnd = { status: 'streaming' }
  #isHanded = false

  constructor(facts: ReceiptFacts) {
    this.#facts = facts
    this.#planned = resumeFactsOf(facts.plan, facts.options)
    this.#hash = facts.options.digest ? createHash('sha256') : undefined
  }

  get bytes(): bigint {
    return this.#bytes
  }

  /** Records the wait for the first streams; later waits of a parked download are caused by its client. */
  waited(ms: number): void {
    this.#waitedMs ??= ms
  }

  /** Sets the body that is sent. */
  follow(body: Body): void {
    this.#body = body
  }

  /** Counts the next bytes of the answer. */
  sent(piece: Uint8Array): void {
    this.#bytes += BigInt(piece.length)
    this.#hash?.update(piece)
  }

  /** The SHA-256 of everything that was sent, if requested; nothing may be sent after it. */
  digest(): string | undefined {
    this.#sha256 ??= this.#hash?.digest('hex')
    return this.#sha256
  }

  end(end: ReceiptEnd): StoredReceipt {
    this.#end = end
    this.#endedAt = new Date()
    return this.now()
  }

  /** After end(): see ResumeFacts.isHanded. */
  handed(): StoredReceipt {
    this.#isHanded = true
    return this.now()
  }

  now(): StoredReceipt {
    const { id, user, path, askedHash, resumed } = this.#facts
    const { status, result, error } = this.#end
    return {
      id,
      status,
      user,
      startedAt: this.#startedAt.toISOString(),
      endedAt: this.#endedAt?.toISOString() ?? null,
      waitedMs: this.#waitedMs === undefined ? null : Math.round(this.#waitedMs),
      path,
      resumedId: resumed?.id ?? null,
      packets: decimal(result?.packets),
      bytes: String(this.#bytes),
      nextNs: decimal(result?.nextNs),
      sha256: result === undefined ? null : (this.digest() ?? null),
      duplicates: decimal(result?.duplicates),
      error: error ?? null,
      devices: this.#body?.result().perDevice.map((report) => receiptDevice(report, status)) ?? [],
      resume: {
        ...this.#planned,
        askedHash,
        places: this.#body?.places() ?? null,
        // An answer that never began contains nothing of the body.
        startBytes: String(this.#body?.continues?.bytes ?? 0),
        headerBytes: this.#body?.continues?.headerBytes ?? 0,
        isHanded: this.#isHanded,
      },
    }
  }
}

/** An error in the form used in receipts; internal errors are not described to callers. */
export function reportedError(error: unknown): ReportedError {
  if (error instanceof CapfleetError) return { code: error.code, detail: error.message }
  return { code: 'internal-error', detail: 'the request hit an internal error; the log has the details' }
}

function receiptDevice(report: DeviceResult, download: DownloadStatus): ReceiptDevice {
  const { missing } = report
  return {
    device: report.device,
    status: deviceStatus(report, download),
    packets: decimal(report.packets),
    bytes: String(report.bytes),
    firstNs: decimal(report.firstNs),
    lastNs: decimal(report.lastNs),
    corruptBlocks: decimal(report.corruptBlocks),
    retries: report.retries,
    outOfOrder: report.outOfOrder,
    stalledMs: Math.round(report.stalledMs),
    clockOffsetNs: decimal(report.clock?.offsetNs),
    clockErrorNs: decimal(report.clock?.errorNs),
    missing: missing === undefined ? null : { fromNs: String(missing.fromNs), toNs: String(missing.toNs) },
    error: report.error ?? null,
  }
}

const WHOLE: ReadonlySet<DownloadStatus> = new Set(['complete', 'truncated', 'partial', 'unverified'])

/** If a download did not end complete, it is unknown whether its client has all packets of a device. */
function deviceStatus({ status, error }: DeviceResult, download: DownloadStatus): ReceiptDevice['status'] {
  if (WHOLE.has(download)) return status
  if (error !== undefined) return 'failed'
  return download === 'streaming' ? 'streaming' : 'incomplete'
}

function decimal(value: bigint | undefined): string | null {
  return value === undefined ? null : String(value)
}
