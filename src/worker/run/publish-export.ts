/** The end of an export: its files are hashed, stored by the target, and described in a manifest. */
import { createHash, hash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { recordEnd } from '../../gateway/export/export-audit.ts'
import { type ExportOrder, shownQuery } from '../../gateway/export/export-order.ts'
import type { ExportParts } from '../../gateway/export/export-parts.ts'
import { offsetOf } from '../../gateway/export/export-pieces.ts'
import type {
  Checkpoint,
  ExportedFile,
  ExportRecord,
  ResultFile,
} from '../../gateway/export/export-record.ts'
import type { ChangeOptions } from '../../gateway/export/export-store.ts'
import { FileWriter, storing } from '../../gateway/export/file-writer.ts'
import { MANIFEST_NAME, targetOf } from '../../gateway/export/order-target.ts'
import type { ExportChange } from '../../gateway/export/record-fields.ts'
import type { ExportTarget } from '../../gateway/export/target/export-target.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import { productVersion } from '../../shared/base/product-version.ts'
import { extreme } from '../files/tally.ts'

export interface Publishing {
  readonly record: ExportRecord
  readonly checkpoint: Checkpoint
  readonly signal: AbortSignal
  /** Changes the export as its writer; throws if it is no longer the writer. */
  readonly keep: (change: ExportChange, files?: ChangeOptions['files']) => Promise<void>
}

/** The folder where the files of an export are written. */
export function workFolder(
  { targets, spool }: Pick<ExportParts, 'targets' | 'spool'>,
  order: ExportOrder,
): string {
  const folder = targetOf({ targets }, order).workFolder
  return folder === undefined ? spool.resultFolderOf(order.id) : join(folder, order.id)
}

/**
 * Creates that folder, but not its parent: a disk that is not mounted must not be taken for an empty one. Fails with
 * export-target-unavailable or export-store-full.
 */
export async function makeWorkFolder(
  parts: Pick<ExportParts, 'targets' | 'spool'>,
  order: ExportOrder,
): Promise<string> {
  const folder = workFolder(parts, order)
  try {
    await storing(() => mkdir(folder, { mode: 0o700 }))
  } catch (cause) {
    if (cause instanceof CapfleetError) throw cause
    const { code = '' } = cause as NodeJS.ErrnoException
    if (code !== 'EEXIST') {
      throw new CapfleetError(
        'export-target-unavailable',
        `the work folder for files of ${order.target} cannot be used (${code}); check that its disk is mounted`,
        { cause },
      )
    }
  }
  return folder
}

/** A file that was published before is not processed again. */
export async function publishExport(parts: ExportParts, publishing: Publishing): Promise<void> {
  const { record, checkpoint, signal, keep } = publishing
  const { order } = record
  const target = targetOf(parts, order)
  const done: ExportedFile[] = []
  const all = await parts.store.madeFiles(order.id, checkpoint.fileCount)
  if (all.length < checkpoint.fileCount) throw new Error(`Redis has lost files of export ${order.id}`)
  for (const [from, made] of all.entries()) {
    const file = 'sha256' in made ? made : await publishFile(target, order, made, signal)
    done.push(file)
    if (file !== made) await keep({ made: { from, files: [file] }, published: done.length })
  }
  const { base } = record
  const state = checkpoint.devices.some(({ holes }) => holes.length > 0) ? 'partial' : 'complete'
  const endedMs = parts.clock.nowMs()
  const troubles = await Promise.all(
    order.plan.devices.map((device) => parts.store.troubleOf(order.id, device)),
  )
  const retries = troubles.map((trouble) => trouble.retries)
  const manifest = manifestOf(parts, { order, checkpoint, files: done, state, endedMs, retries })
  await publishManifest(parts, order, target, manifest, signal)
  const expiresMs = endedMs + parts.limits.keepMs
  const fills = base?.count ?? record.fills
  await recordEnd(parts.audit, order, { outcome: state, files: done })
  const before = base === undefined ? [] : await parts.store.keptFiles(record)
  const ended = { state, stage: 'ended', endedMs, expiresMs, published: done.length } as const
  await keep({ ...ended, writer: '', error: null, base: null, fills }, 'published')
  const names = new Set(done.map(({ name }) => name))
  for (const { name } of before) if (!names.has(name)) await target.removeFile({ exportId: order.id, name })
  parts.outcomes.ended(state)
}

async function publishFile(
  target: ExportTarget,
  { id: exportId }: ExportOrder,
  file: ResultFile,
  signal: AbortSignal,
): Promise<ExportedFile> {
  const { name, path, packets, firstNs, lastNs } = file
  const place = { exportId, name }
  const bytes = await stat(path).then(
    ({ size }) => size,
    () => undefined,
  )
  // A worker that died here may already have given it to the target.
  const source =
    bytes === undefined ? await target.open(place) : createReadStream(path, { highWaterMark: HASHED_AT_ONCE })
  const { sha256, length } = await hashOf(source, signal)
  if (bytes !== undefined) await target.publish({ ...place, path, bytes, sha256 }, { signal })
  return { name, bytes: String(length), packets, firstNs, lastNs, sha256 }
}

const HASHED_AT_ONCE = 1_048_576

/** Of what is on disk: the bytes read here are the ones that will be read later. */
async function hashOf(source: AsyncIterable<Buffer>, signal: AbortSignal) {
  const hash = createHash('sha256')
  let length = 0
  for await (const chunk of source) {
    signal.throwIfAborted()
    hash.update(chunk)
    length += chunk.length
  }
  return { sha256: hash.digest('hex'), length }
}

interface ManifestFacts {
  readonly order: ExportOrder
  readonly checkpoint: Checkpoint
  readonly files: readonly ExportedFile[]
  readonly state: 'complete' | 'partial'
  readonly endedMs: number
  /** How often each device was retried. */
  readonly retries: readonly number[]
}

/** The contract defines its form (EXPORT_MANIFEST). */
function manifestOf(
  { fleet }: ExportParts,
  { order, checkpoint, files, state, endedMs, retries }: ManifestFacts,
): object {
  const sum = (values: readonly string[]) =>
    String(values.reduce((total, value) => total + BigInt(value), 0n))
  return {
    version: 1,
    program: `capfleet ${productVersion()}`,
    id: order.id,
    user: order.user,
    reason: order.reason,
    state,
    createdAt: new Date(order.createdMs).toISOString(),
    endedAt: new Date(endedMs).toISOString(),
    kind: order.plan.kind,
    query: shownQuery(order),
    forcedFilters: order.plan.forcedFilters,
    packets: sum(files.map(({ packets }) => packets)),
    bytes: sum(files.map(({ bytes }) => bytes)),
    firstNs: files.reduce<string | null>(
      (known, { firstNs }) => extreme(known, nanoseconds(firstNs), isLess),
      null,
    ),
    lastNs: files.reduce<string | null>(
      (known, { lastNs }) => extreme(known, nanoseconds(lastNs), isMore),
      null,
    ),
    devices: checkpoint.devices.map(({ holes, ...tally }, index) => ({
      ...tally,
      retries: retries[index] ?? 0,
      clockOffsetNs: decimal(
        offsetOf(checkpoint, tally.device) ??
          (fleet.find(tally.device) === undefined ? undefined : fleet.clockOf(tally.device)?.offsetNs),
      ),
      missing: holes,
    })),
    files,
  }
}

async function publishManifest(
  parts: ExportParts,
  order: ExportOrder,
  target: ExportTarget,
  manifest: object,
  signal: AbortSignal,
): Promise<void> {
  const folder = await makeWorkFolder(parts, order)
  const path = join(folder, `${MANIFEST_NAME}.${randomUUID()}`)
  const text = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
  {
    await using writer = await FileWriter.open(path)
    await writer.write(text)
    await writer.flush()
  }
  const sha256 = hash('sha256', text)
  const file = { exportId: order.id, name: MANIFEST_NAME, path, bytes: text.length, sha256 }
  await target.publish(file, { signal })
}

const nanoseconds = (text: string | null) => (text === null ? undefined : BigInt(text))
const isLess = (a: bigint, b: bigint) => a < b
const isMore = (a: bigint, b: bigint) => a > b

function decimal(value: bigint | undefined): string | null {
  return value === undefined ? null : String(value)
}
