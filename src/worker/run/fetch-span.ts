/**
 * Fetches one device's part of one window into the spool: one stream, under its own bulk lease. A worker that dies
 * here only loses what arrived since the last checkpoint: another one copies what was stored and continues.
 */
import { constants } from 'node:fs'
import { copyFile, open, unlink } from 'node:fs/promises'
import { isForeign } from '../../gateway/device/device-kind.ts'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import { pieceQuery } from '../../gateway/export/export-pieces.ts'
import type { ExportWindow, Hole } from '../../gateway/export/export-record.ts'
import { FileWriter, storing } from '../../gateway/export/file-writer.ts'
import { ignoreMissing, type SpanCheckpoint, type SpanFiles } from '../../gateway/export/spool.ts'
import { FetchedDownload, type FetchParts } from '../../gateway/fetch/body/fetch-download.ts'
import {
  type DownloadPlan,
  type DownloadStep,
  isTimedByHardware,
  mergeStep,
  partOfMerge,
  planDownload,
} from '../../gateway/fleet/plan/plan.ts'
import type { BoundedQuery } from '../../gateway/fleet/plan/within-bounds.ts'
import { FileInterfaces } from '../../gateway/pcap/file-interfaces.ts'
import { taggedRecords } from '../../gateway/pcap/tagged-records.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import { FileChunks } from '../files/file-chunks.ts'

export interface SpanRequest {
  readonly order: ExportOrder
  readonly window: ExportWindow
  readonly device: string
  /** Unique: the queue shows the lease under it. */
  readonly leaseId: string
  readonly files: SpanFiles
  readonly waitMs: number
  readonly checkpointBytes: number
  readonly signal: AbortSignal
  /** Called when the device's stream has been opened. */
  readonly onStream: () => void
  /** Called with the number of bytes of the span in the spool, and how many of them have just arrived. */
  readonly onProgress: (bytes: number, comeBytes: number) => void
}

/** The span is in the spool when this resolves. Fails like a download, or with export-store-full. */
export async function fetchSpan(parts: FetchParts, request: SpanRequest): Promise<void> {
  const { files } = request
  if ((await files.outcome()) !== undefined) return
  await storing(() => files.prepare())
  try {
    await fetchFrom(parts, request, await files.checkpoint())
  } catch (error) {
    if (!cannotGoOn(error) || (await files.checkpoint()) === undefined) throw error
    // The device returns other bytes now, or cannot skip any: the span starts over.
    await files.forgetCheckpoint()
    await fetchFrom(parts, request, undefined)
  }
}

/**
 * One device's part of the ordered download, uncompressed; the rest is done when spans are joined. A third-party device
 * does not say which ports its packets are from, so its part is a PCAP in any case.
 */
export function spanPlan(
  order: ExportOrder,
  query: BoundedQuery,
  {
    device,
    deviceKind,
    isFill = false,
  }: Pick<DownloadStep, 'device' | 'deviceKind'> & { readonly isFill?: boolean | undefined },
): DownloadPlan {
  // When files are being filled, times keep the resolution that was ordered.
  const isMerge = order.plan.devices.length > 1 && !isFill
  const asked = isForeign(deviceKind) ? ({ format: 'pcap' } as const) : {}
  return planDownload(
    { ...(isMerge ? partOfMerge(query) : query), ...asked, compression: 'none' },
    [device],
    1,
  )
}

/** The query of a window of the order. */
export function windowQuery(order: ExportOrder, window: ExportWindow): BoundedQuery {
  const query = pieceQuery(order, window.piece)
  if (window.isWholePiece) return query
  return { ...query, beginNs: BigInt(window.beginNs), endNs: BigInt(window.endNs) }
}

async function fetchFrom(
  parts: FetchParts,
  request: SpanRequest,
  kept: SpanCheckpoint | undefined,
): Promise<void> {
  const { order, window, device, files, signal } = request
  const { name, path } = files.attempt()
  const query = windowQuery(order, window)
  const { fleet } = parts
  await fleet.knowKinds([device])
  const planned = spanPlan(order, query, {
    device,
    deviceKind: fleet.kindOf(device),
    isFill: window.isFill,
  })
  const plan = mergedOnTheWay(planned, order, parts)
  const lost = new AbortController()
  try {
    if (kept !== undefined) await copyKept(files.pathOf(kept.file), path)
    await using writer = await FileWriter.open(path, kept?.bytes ?? 0)
    await using fetched = await FetchedDownload.open(plan, parts, {
      id: request.leaseId,
      user: order.user,
      class: 'bulk',
      waitMs: request.waitMs,
      options: { onError: 'fail', align: false },
      from: kept && { bytes: kept.bytes, places: kept.places, first: NOTHING },
      signal: AbortSignal.any([signal, lost.signal]),
      onPosition: () => undefined,
      onWaited: request.onStream,
      onLost: (reason) => lost.abort(reason),
    })
    signal.throwIfAborted()
    await pourInto(writer, fetched, name, request)
    // Other downloads need not wait for our disk.
    await fetched[Symbol.asyncDispose]()
    await writer.flush()
    if (plan.kind === 'relay' && plan.query.format === 'pcapng') await checkBlocks(path, device)
    // The bounds of windows depend on all packets, also on those that the caller may not see.
    const told = query.forcedFilters.length > 0 ? pieceQuery(order, window.piece) : query
    const holes = [...agedOutHoles(fetched, told), ...damageHoles(fetched, told), ...openEnds(fetched, told)]
    const { isTruncated = false, nextNs } = fetched.body.result()
    const limited = isTruncated && nextNs !== undefined ? { nextNs: String(nextNs) } : {}
    await files.finish({ file: name, bytes: writer.bytes, holes, fatal: null, ...limited })
  } finally {
    await removeUnneeded(files, [name, kept?.file])
  }
}

const NOTHING = new Uint8Array(0)

async function pourInto(
  writer: FileWriter,
  { body }: FetchedDownload,
  name: string,
  { files, checkpointBytes, onProgress, signal }: SpanRequest,
): Promise<void> {
  using _memory = body
  let nextAt = writer.bytes + checkpointBytes
  for await (const chunk of body.chunks) {
    signal.throwIfAborted()
    await writer.write(chunk)
    onProgress(writer.bytes, chunk.length)
    if (writer.bytes < nextAt) continue
    nextAt = writer.bytes + checkpointBytes
    const places = body.places()
    if (places === undefined) continue
    await writer.flush()
    await files.setCheckpoint({ file: name, bytes: writer.bytes, places })
  }
}

/**
 * Fails with device-protocol if the packets cannot be merged. A relay follows the lengths of blocks only, and when spans
 * are joined, one that cannot be read would end the export of all devices.
 */
async function checkBlocks(path: string, device: string): Promise<void> {
  await using file = await storing(() => open(path, 'r'))
  const interfaces = new FileInterfaces({ devices: [device], siteOf: () => undefined, filterBpf: undefined })
  const options = { device, interfaces, alignNs: 0n, isContinued: false }
  const records = taggedRecords(new FileChunks(file), options)
  for (let next = await records.next(); next.done !== true; ) next = await records.next()
}

/** A device that breaks off repeatedly must not fill the spool. */
async function removeUnneeded(files: SpanFiles, names: readonly (string | undefined)[]): Promise<void> {
  const needed = [(await files.outcome())?.file, (await files.checkpoint())?.file]
  for (const name of names)
    if (name !== undefined && !needed.includes(name)) await unlink(files.pathOf(name)).catch(ignoreMissing)
}

/** A copy: the previous writer may still write to its file, and must not affect ours. */
async function copyKept(from: string, to: string): Promise<void> {
  await storing(() => copyFile(from, to, constants.COPYFILE_FICLONE))
}

/**
 * A third-party device may send packets late, and others than those of the range: it is merged alone, so that its span
 * is sorted when the spans are joined, and no packet is in two of them. A device behind a slow line is merged alone too,
 * because only streams of a merge come compressed. All others are relayed, as by a download of one device.
 */
function mergedOnTheWay(plan: DownloadPlan, order: ExportOrder, { fleet }: FetchParts): DownloadPlan {
  const [step] = plan.steps
  if (step === undefined) return plan
  const isMended =
    isForeign(fleet.kindOf(step.device)) && (order.plan.devices.length > 1 || isTimedByHardware(plan.query))
  const isCompressed = (fleet.fetchCompressionOf(step.device) ?? 'none') !== 'none'
  if (!isMended && !isCompressed) return plan
  return { kind: 'merge', query: plan.query, steps: [mergeStep(step, plan.query)] }
}

/** What the device says that its store has no longer. */
function agedOutHoles({ body }: FetchedDownload, { beginNs, endNs }: BoundedQuery): readonly Hole[] {
  const before = body.facts.claims.agedOutBeforeNs
  if (before === undefined || before <= beginNs) return []
  const toNs = before < endNs ? before : endNs
  const detail = 'packets of this time were removed by retention on the device'
  return [{ fromNs: String(beginNs), toNs: String(toNs), final: true, error: { code: 'aged-out', detail } }]
}

/** What the device left out as damaged. The device does not say where in the range that is. */
function damageHoles({ body }: FetchedDownload, { beginNs, endNs }: BoundedQuery): readonly Hole[] {
  const { corruptBlocks = 0n } = body.result()
  if (corruptBlocks === 0n) return []
  const detail = `the device left out ${corruptBlocks} damaged blocks of this time; the rest is complete`
  return [
    { fromNs: String(beginNs), toNs: String(endNs), final: true, error: { code: 'store-corrupt', detail } },
  ]
}

/** A device that closes the connection at the end of its answers does not show whether one was cut off. */
function openEnds({ body }: FetchedDownload, { beginNs, endNs }: BoundedQuery): readonly Hole[] {
  const unverified = body.result().perDevice.find(({ status }) => status === 'unverified')
  if (unverified === undefined) return []
  const { error } = unverified
  const detail =
    error?.detail ??
    'the device ended its response by closing the connection, which looks the same as a cut-off response: packets of this time may be missing'
  return [
    {
      fromNs: String(beginNs),
      toNs: String(endNs),
      final: error === undefined,
      error: { code: 'device-unverified', detail },
    },
  ]
}

/** The rest cannot be continued after what was stored, but the whole might be fetched. */
function cannotGoOn(error: unknown): boolean {
  return (
    error instanceof CapfleetError && ['aged-out', 'not-implemented', 'bad-parameter'].includes(error.code)
  )
}
