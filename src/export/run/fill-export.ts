/**
 * Fills the holes of a partial export: what a device could not give is fetched, and joined with the files that are
 * there. What they hold is not asked for again, for a device may have it no longer. Of packets with the same timestamp
 * those that fill a hole come last.
 */
import type { FileHandle } from 'node:fs/promises'
import { open } from 'node:fs/promises'
import { decode } from '../../fetch/decode.ts'
import { agreedHeader } from '../../pcap/common-header.ts'
import { PcapMerge } from '../../pcap/merge.ts'
import { formatPcapHeader, PCAP_HEADER_BYTES } from '../../pcap/pcap-header.ts'
import { type ChunkStream, PcapInput } from '../../pcap/pcap-input.ts'
import { encodingOf } from '../../query/query-values.ts'
import { type ExportOrder, orderedQuery } from '../export-order.ts'
import { offsetOf, pieceCount, pieceQuery, resultName } from '../export-pieces.ts'
import type {
  Checkpoint,
  DeviceTally,
  ExportedFile,
  ExportRecord,
  ExportWindow,
  FillBase,
  Hole,
  ResultFile,
} from '../export-record.ts'
import type { ExportChange } from '../export-store.ts'
import { FileChunks } from '../files/file-chunks.ts'
import { RecordSource } from '../files/record-source.ts'
import { ResultFiles } from '../files/result-files.ts'
import type { SpanOutcome } from '../files/spool.ts'
import { tallied } from '../files/tally.ts'
import type { ExportTarget } from '../target/export-target.ts'
import type { ExportParts } from './export-parts.ts'
import { makeWorkFolder, targetOf } from './publish-export.ts'

/** Whether there is anything that a device may still have. */
export function isFillable({ checkpoint }: ExportRecord): boolean {
  return (checkpoint?.devices ?? []).some(({ holes }) => holes.some(({ final }) => !final))
}

/** What an export becomes that is to be filled. REQUIRES: it is partial, and fillable. */
export function fillingOf(record: ExportRecord): ExportChange {
  const { order, checkpoint, files, endedMs = 0, expiresMs = 0, fills } = record
  if (checkpoint === undefined) throw new Error('an export that has ended has a checkpoint')
  const ordered = holeWindows(order, checkpoint)
  const withoutHoles = ({ holes, ...tally }: DeviceTally) => ({
    ...tally,
    holes: holes.filter(({ final }) => final),
  })
  return {
    state: 'queued',
    stage: 'waiting',
    writer: '',
    error: null,
    base: { checkpoint, files, endedMs, expiresMs, count: fills + 1 },
    files: [],
    checkpoint: {
      ...checkpoint,
      ordered,
      nextIndex: checkpoint.nextIndex + ordered.length,
      files: [],
      isFileOpen: false,
      devices: checkpoint.devices.map(withoutHoles),
      fetchedBytes: '0',
      estimatedBytes: null,
    },
  }
}

/** What an export is again that could not be filled. */
export function asBefore({ checkpoint, files, endedMs, expiresMs }: FillBase): ExportChange {
  return { state: 'partial', checkpoint, files, endedMs, expiresMs, base: null }
}

/** A window for each hole of each device, in each piece. */
function holeWindows(order: ExportOrder, { devices, nextIndex }: Checkpoint): readonly ExportWindow[] {
  const windows: ExportWindow[] = []
  for (const { device, holes } of devices) {
    for (const hole of holes.filter(({ final }) => !final)) {
      for (let piece = 0; piece < pieceCount(order); piece += 1) {
        const range = commonRange(hole, pieceQuery(order, piece))
        if (range === undefined) continue
        const leftOut = order.plan.devices.filter((other) => other !== device)
        const index = nextIndex + windows.length
        windows.push({ ...range, index, piece, endsPiece: true, header: null, leftOut, isFill: true })
      }
    }
  }
  return windows
}

function commonRange(hole: Hole, piece: { readonly beginNs: bigint; readonly endNs: bigint }) {
  const [fromNs, toNs] = [BigInt(hole.fromNs), BigInt(hole.toNs)]
  const beginNs = fromNs > piece.beginNs ? fromNs : piece.beginNs
  const endNs = toNs < piece.endNs ? toNs : piece.endNs
  if (beginNs >= endNs) return undefined
  const isWholePiece = beginNs === piece.beginNs && endNs === piece.endNs
  return { beginNs: String(beginNs), endNs: String(endNs), isWholePiece }
}

export interface Filling {
  readonly order: ExportOrder
  readonly base: FillBase
  readonly checkpoint: Checkpoint
  readonly fetched: readonly FetchedHole[]
  readonly signal: AbortSignal
}

interface FetchedHole {
  readonly window: ExportWindow
  readonly outcome: SpanOutcome | undefined
}

/** Makes the files anew that have holes which were fetched; the checkpoint knows all files of the export then. */
export async function fillFiles(parts: ExportParts, filling: Filling): Promise<Checkpoint> {
  const { order, base, fetched } = filling
  let checkpoint: Checkpoint = { ...filling.checkpoint, ordered: [] }
  const files: ResultFile[] = []
  for (let piece = 0; piece < pieceCount(order); piece += 1) {
    const old = order.partTimeNs === null ? base.files : base.files.slice(piece, piece + 1)
    const holes = fetched.filter(({ window }) => window.piece === piece)
    const came = holes.filter(({ outcome }) => (outcome?.bytes ?? 0) > 0)
    if (came.length === 0) files.push(...old.map(asKept))
    else
      files.push(
        ...(await fillPiece(parts, { ...filling, piece, old, came }, (counts) => {
          checkpoint = counts(checkpoint)
        })),
      )
    for (const { window, outcome } of holes.filter((hole) => !came.includes(hole)))
      checkpoint = {
        ...checkpoint,
        ...tallied(checkpoint, { window, inputs: [], came: [{ device: deviceOf(order, window), outcome }] }),
      }
  }
  return { ...checkpoint, files }
}

interface FilledPiece extends Filling {
  readonly piece: number
  readonly old: readonly ExportedFile[]
  readonly came: readonly FetchedHole[]
}

async function fillPiece(
  parts: ExportParts,
  { order, base, piece, old, came, signal }: FilledPiece,
  onCounts: (counts: (before: Checkpoint) => Checkpoint) => void,
): Promise<readonly ResultFile[]> {
  const query = orderedQuery(order)
  const target = targetOf(parts, order)
  await using opened = new AsyncDisposableStack()
  const inputs = [await PcapInput.open('the export', keptRecords(target, order, old))]
  for (const { window, outcome } of came) {
    const device = deviceOf(order, window)
    const span = parts.spool.span(order.id, window, order.plan.devices.indexOf(device))
    const file: FileHandle = opened.use(await open(span.pathOf(outcome?.file ?? ''), 'r'))
    const nowNs = order.align ? parts.fleet.clockOf(device)?.offsetNs : undefined
    const alignNs = offsetOf(base.checkpoint, device) ?? nowNs
    inputs.push(await PcapInput.open(device, new FileChunks(file), alignNs === undefined ? {} : { alignNs }))
  }
  const header = await agreedHeader(inputs)
  const dedupNs = order.dedupNs === null ? undefined : BigInt(order.dedupNs)
  const merge = new PcapMerge(inputs, { signal, dedupNs })
  await using source = new RecordSource(merge.chunks(), header)
  await using result = await ResultFiles.open({
    folder: await makeWorkFolder(parts, order),
    compression: query.compression,
    partBytes: order.partBytes === null ? undefined : Number(order.partBytes),
    signal,
    files: [],
    isFileOpen: false,
    isHandedOver: true,
  })
  const nameOf = (part: number) => resultName(order, piece, part).replace('.pcap', `_r${base.count}.pcap`)
  await result.append(source, { header: formatPcapHeader(header), nameOf })
  await result.endFile()
  const [, ...spans] = merge.totals.inputs
  for (const [at, { window, outcome }] of came.entries()) {
    const joined = {
      window,
      inputs: spans.slice(at, at + 1),
      came: [{ device: deviceOf(order, window), outcome }],
    }
    onCounts((before) => ({ ...before, ...tallied(before, joined) }))
  }
  return result.files
}

/** The only device that the window asks. */
function deviceOf({ plan }: ExportOrder, { leftOut }: ExportWindow): string {
  return plan.devices.find((device) => !leftOut.includes(device)) ?? ''
}

function asKept({ bytes, ...file }: ExportedFile): ResultFile {
  return { ...file, bytes, path: '', pcapBytes: bytes }
}

/** The records of files that lie one behind the other, with the header of the first. */
function keptRecords(target: ExportTarget, order: ExportOrder, files: readonly ExportedFile[]): ChunkStream {
  const encoding = encodingOf(orderedQuery(order).compression)
  async function* records(): AsyncGenerator<Uint8Array> {
    for (const [at, { name }] of files.entries()) {
      const chunks = (await target.open({ exportId: order.id, name }))[Symbol.asyncIterator]()
      const plain =
        encoding === 'none'
          ? { [Symbol.asyncIterator]: () => chunks }
          : decode({ device: name, encoding, chunks, isOurs: true })
      yield* at === 0 ? plain : withoutFirst(plain, PCAP_HEADER_BYTES)
    }
  }
  return records()
}

async function* withoutFirst(chunks: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
  let left = bytes
  for await (const chunk of chunks) {
    const cut = Math.min(left, chunk.length)
    left -= cut
    if (cut < chunk.length) yield chunk.subarray(cut)
  }
}
