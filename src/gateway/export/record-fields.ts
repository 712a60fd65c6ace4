/** An export as the fields of its hash in Redis, of this version and of earlier ones. */
import type { ExportOrder } from './export-order.ts'
import type {
  Checkpoint,
  ExportedFile,
  ExportRecord,
  ExportStage,
  ExportState,
  FillBase,
  MadeFile,
  ReportedFailure,
  Waiting,
} from './export-record.ts'
import { type FormerBase, type FormerCheckpoint, readParts } from './former-record.ts'

/** The fields to change; absent members stay. */
export interface ExportChange {
  readonly state?: ExportState
  readonly stage?: ExportStage
  readonly writer?: string
  readonly checkpoint?: Checkpoint
  readonly startedMs?: number
  readonly endedMs?: number
  readonly expiresMs?: number
  readonly isRemoved?: true
  /** null: clears the error. */
  readonly error?: ReportedFailure | null
  /** null: the export is no longer waiting. */
  readonly waiting?: Waiting | null
  /** Finished files, starting at this number. */
  readonly made?: { readonly from: number; readonly files: readonly MadeFile[] }
  /** All files that may be read; set where an earlier version stored them in the record. */
  readonly kept?: readonly ExportedFile[] | undefined
  /** Number of finished files that the target has. */
  readonly published?: number
  /** null: filling has ended. */
  readonly base?: FillBase | null
  readonly fills?: number
  /** Bytes of the span of a device that is being fetched now. */
  readonly fetching?: { readonly device: string; readonly bytes: number }
}

/** How a device's failures are stored with an export. */
export interface Trouble {
  readonly retries: number
  /** Since when it has been unreadable, or null if it has been read since. */
  readonly sinceMs: number | null
  /** Whether it was retried for as long as the export may wait. */
  readonly isGivenUp: boolean
}

export const NO_TROUBLE: Trouble = { retries: 0, sinceMs: null, isGivenUp: false }

export function listed(files: readonly MadeFile[]): readonly (string | number)[] {
  return [files.length, ...files.map((file) => JSON.stringify(file))]
}

/** Clears the fields where earlier versions stored a checkpoint, and the files that the target has. */
const NOTHING_FORMER = ['checkpoint', 'null', 'files', '[]']

export function fieldsOf({ fetching, checkpoint, ...change }: ExportChange): string[] {
  const place = checkpoint && ['progress', JSON.stringify(checkpoint), ...NOTHING_FORMER]
  const plain = Object.entries(change).flatMap(([name, value]) => {
    if (value === undefined) return []
    return [
      name,
      typeof value === 'string' || typeof value === 'number' ? String(value) : JSON.stringify(value),
    ]
  })
  const fetched = fetching && [`fetching:${fetching.device}`, String(fetching.bytes)]
  return [...(place ?? []), ...plain, ...(fetched ?? [])]
}

export function recordOf(fields: Readonly<Record<string, string>>): ExportRecord | undefined {
  const { order, state, stage, writer = '', revision } = fields
  if (order === undefined) return undefined
  const number = (text: string | undefined) => (text === undefined ? undefined : Number(text))
  const byDevice = (start: string) =>
    Object.entries(fields).flatMap(([name, value]): [string, string][] =>
      name.startsWith(start) ? [[name.slice(start.length), value]] : [],
    )
  const fetching = byDevice('fetching:').map(([device, bytes]) => [device, Number(bytes)] as const)
  const retries = byDevice('trouble:').map(
    ([device, text]) => [device, (JSON.parse(text) as Trouble).retries] as const,
  )
  return {
    order: JSON.parse(order) as ExportOrder,
    state: state as ExportState,
    stage: stage as ExportStage,
    writer,
    revision: Number(revision),
    ...readParts({
      // Without it, a worker of an earlier version would start from scratch.
      checkpoint: parsed<FormerCheckpoint>(fields.checkpoint) ?? parsed<Checkpoint>(fields.progress),
      base: parsed<FormerBase | FillBase>(fields.base),
      files: parsed<ExportedFile[]>(fields.files) ?? [],
    }),
    startedMs: number(fields.startedMs),
    endedMs: number(fields.endedMs),
    expiresMs: number(fields.expiresMs),
    isRemoved: fields.isRemoved === 'true',
    error: parsed<ReportedFailure>(fields.error),
    waiting: parsed<Waiting>(fields.waiting),
    published: number(fields.published) ?? parsed<ExportedFile[]>(fields.files)?.length ?? 0,
    fills: number(fields.fills) ?? 0,
    fetching: new Map(fetching.filter(([, bytes]) => bytes > 0)),
    retries: new Map(retries),
  }
}

/** Returns undefined if there is no value, or no longer one. */
function parsed<Value>(json: string | undefined): Value | undefined {
  return json === undefined ? undefined : ((JSON.parse(json) as Value | null) ?? undefined)
}
