/** joinWindow() for exports in pcapng. */
import { type FileHandle, open } from 'node:fs/promises'
import type { ExportOrder } from '../../gateway/export/export-order.ts'
import { pieceQuery } from '../../gateway/export/export-pieces.ts'
import type { DeviceTally, ExportWindow, Hole } from '../../gateway/export/export-record.ts'
import { missingComment, pcapngHead } from '../../gateway/fetch/body/merged-pcapng.ts'
import { isPcapng } from '../../gateway/fetch/encoding/stream-encoding.ts'
import { FileInterfaces } from '../../gateway/pcap/file-interfaces.ts'
import { type MergedInput, PcapMerge } from '../../gateway/pcap/merge.ts'
import { type ChunkStream, PcapInput } from '../../gateway/pcap/pcap-input.ts'
import { taggedRecords } from '../../gateway/pcap/tagged-records.ts'
import { MAX_CAPTURED_LENGTH } from '../../shared/pcap/pcap-sizes.ts'
import { BlockSource, endBytes, type FileRemarks } from './block-source.ts'
import { FileChunks } from './file-chunks.ts'
import { mergeLimits, type Span } from './join-window.ts'
import type { ResultFiles } from './result-files.ts'

export interface JoinBlocksRequest {
  readonly order: ExportOrder
  readonly window: ExportWindow
  /** The spans in the order of the devices; devices without packets are left out. */
  readonly spans: readonly Span[]
  /** What is missing of each device so far, including the window. */
  readonly devices: readonly Pick<DeviceTally, 'device' | 'holes'>[]
  readonly siteOf: (device: string) => string | undefined
  /** Whether a device ended its span at a limit: the time of the next packet. */
  readonly nextNs: bigint | undefined
  /** What the files already contain of the window, if it fills a hole; these packets precede those of the spans. */
  readonly kept?: (interfaces: FileInterfaces) => ChunkStream
  readonly nameOf: (part: number) => string
  readonly signal: AbortSignal
}

/** The outcome of each span, in order. Ends the file if the window ends its piece. */
export async function joinBlocks(
  request: JoinBlocksRequest,
  into: ResultFiles,
): Promise<readonly MergedInput[]> {
  const { order, window, spans, siteOf, kept, signal, nameOf } = request
  const query = pieceQuery(order, window.piece)
  const { devices } = order.plan
  const merged = new FileInterfaces({ devices, siteOf, filterBpf: query.filterBpf })
  await using files = new AsyncDisposableStack()
  const inputs: PcapInput[] = []
  if (kept !== undefined)
    inputs.push(await PcapInput.open('the export', kept(merged), { interface: 'tagged' }))
  for (const span of spans) inputs.push(await inputOf(span, files.use(await open(span.path, 'r')), merged))
  const header = pcapngHead(query, devices)
  const lacks = lacksOf(request)
  const limits = mergeLimits(query, {
    isMerge: devices.length > 1 || kept !== undefined,
    otherBytes: header.length + endBytes(lacks),
  })
  const toMicroseconds = query.timeResolution === 'usec'
  const merge = new PcapMerge(inputs, { ...limits, signal, toMicroseconds, interfaces: merged })
  const remarks: FileRemarks = {
    lacks,
    comments: holesOf(request).map(([device, { fromNs, toNs, error }]) =>
      missingComment(device, { fromNs: BigInt(fromNs), toNs: BigInt(toNs) }, error.detail),
    ),
    nextNs: () => (source.hasMore ? undefined : (merge.totals.nextNs ?? request.nextNs)),
  }
  await using source = new BlockSource(merge.chunks(), {
    merged,
    written: into.openFile?.interfaces ?? [],
    snaplen: query.sliceBytes ?? MAX_CAPTURED_LENGTH,
    remarks,
    beginNs: query.beginNs,
    nameOfNone: `${devices[0]}:capture`,
    fileBytesMax: query.maxBytes === undefined ? Infinity : Number(query.maxBytes),
  })
  await into.append(source, { header, nameOf })
  if (window.endsPiece) await into.endFile(source)
  return merge.totals.inputs.slice(kept === undefined ? 0 : 1)
}

/** A span is pcapng if its device says of each packet which port it is from, else a PCAP. */
async function inputOf(
  { device, alignNs }: Span,
  file: FileHandle,
  interfaces: FileInterfaces,
): Promise<PcapInput> {
  const begin = Buffer.alloc(4)
  await file.read(begin, 0, begin.length, 0)
  const chunks = new FileChunks(file)
  const aligned = alignNs === undefined ? {} : { alignNs }
  if (isPcapng(begin)) {
    const options = { device, interfaces, alignNs: alignNs ?? 0n, isContinued: false }
    return await PcapInput.open(device, taggedRecords(chunks, options), { ...aligned, interface: 'tagged' })
  }
  const input = await PcapInput.open(device, chunks, aligned)
  input.interface = interfaces.addDevice(device, input.header)
  return input
}

/** What is missing from the piece up to the end of the window, or of the piece if that ends with the window. */
function holesOf({ order, window, devices }: JoinBlocksRequest): readonly (readonly [string, Hole])[] {
  const { beginNs, endNs: pieceEndNs } = pieceQuery(order, window.piece)
  const endNs = window.endsPiece ? pieceEndNs : BigInt(window.endNs)
  const isInPiece = ({ fromNs, toNs }: Hole) => BigInt(fromNs) < endNs && BigInt(toNs) > beginNs
  return devices.flatMap(({ device, holes }) =>
    holes.filter(isInPiece).map((hole) => [device, hole] as const),
  )
}

function lacksOf(request: JoinBlocksRequest): readonly string[] {
  const holes = holesOf(request)
  const devicesWith = (isMeant: (code: string) => boolean) =>
    [...new Set(holes.filter(([, { error }]) => isMeant(error.code)).map(([device]) => device))].join(', ')
  const damaged = devicesWith((code) => code === 'store-corrupt')
  const unverified = devicesWith((code) => code === 'device-unverified')
  const missing = devicesWith((code) => code !== 'store-corrupt' && code !== 'device-unverified')
  return [
    ...(damaged === '' ? [] : [`damaged blocks of ${damaged} are missing`]),
    ...(missing === '' ? [] : [`without packets of ${missing}`]),
    ...(unverified === '' ? [] : [`not verified to the end: ${unverified}`]),
  ]
}
