/** One opened device stream: its answer was 200 and it began with a PCAP (or compressed) header. */
import { Readable } from 'node:stream'
import { bytesText } from '../../../shared/base/amounts.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import { Span } from '../../../shared/base/spans.ts'
import { parsePcapHeader } from '../../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import {
  bodyEncodingOf,
  COMPRESSIONS,
  type CompressedEncoding,
  type Encoding,
  FILE_FORMATS,
  isCompressed,
} from '../../../shared/query/download/query-values.ts'
import { NO_OPEN_CHUNK } from '../../device/body-framing.ts'
import type { DeviceClient } from '../../device/device-client.ts'
import { deviceLate, deviceProtocol } from '../../device/device-failure.ts'
import { isForeign, kindOfAnswer } from '../../device/device-kind.ts'
import type { BodyRead, DeviceStream } from '../../device/device-stream.ts'
import { MERGE_READ_SIZE, RELAY_READ_SIZE } from '../../device/read-size.ts'
import { type DeviceState, UNKNOWN_STATE } from '../../fleet/device-identity.ts'
import type { AfterBytes, DownloadStep } from '../../fleet/plan/plan.ts'
import { CANNOT_CONTINUE } from '../../pcap/after-delivered.ts'
import { decode } from '../encoding/decode.ts'
import { compressionOf, isPcapng } from '../encoding/stream-encoding.ts'
import { noteEnded, openAfterAnother, orRefusal } from '../proof/possible-refusal.ts'
import { proveFilters, refuseIgnored } from '../proof/proved-filters.ts'
import { awaitShownFilters, type ShowingOptions, type StreamKeeper } from '../proof/shown-filters.ts'
import { announcesCompletion, SourceBody } from './source-body.ts'

export interface Source extends Disposable {
  readonly device: string
  /** How the stream is encoded, according to its first bytes. */
  readonly encoding: Encoding
  readonly headers: Readonly<Record<string, string>>
  /**
   * All bytes from the first, to be read once: pulled, or poured to a consumer that forwards the framing too. Ends
   * only if the body is complete: throws device-unreachable, device-timeout or device-protocol if the stream breaks,
   * ends without the completion trailer that it announced, or (without one) inside an element of its format; or the
   * signal's reason.
   */
  readonly body: SourceBody
  /** The header of a PCAP; empty if it is compressed, or pcapng. */
  readonly header: Buffer
}

export interface OpenOptions {
  /** Label of the caller who requested the download. */
  readonly caller: string
  /** Ends the stream too, not only the opening. */
  readonly signal: AbortSignal
  /** The device must have sent the header of the stream within this time. */
  readonly startTimeoutMs: number
  /** How long a third-party device may take to show that it applies a filter; default: startTimeoutMs. */
  readonly patienceMs?: number
  /** Keeps the lease while a third-party device searches for what it shows, even if the download has ended. */
  readonly keeper?: StreamKeeper | undefined
  /** A third-party device as it is known now; default: nothing is known. */
  readonly state?: DeviceState
  /** Called before each stream that is opened after another one has ended. */
  readonly onReopening?: () => void
  /** Whether it is the only source of its download, so that its bytes are passed on unchanged. */
  readonly isRelayed?: boolean
}

/**
 * Opens the stream of one step. The caller must dispose the source. Fails with device-unreachable, device-timeout,
 * device-protocol, device-rejected, or the device's own error. On "download-slots-exhausted" (a client outside the
 * scheduler holds a stream) the caller returns the lease to the queue.
 */
export async function openSource(
  client: DeviceClient,
  step: DownloadStep,
  options: OpenOptions,
): Promise<Source> {
  const { caller, startTimeoutMs, isRelayed = false } = options
  const late = new AbortController()
  const span = new Span('device stream', 'client', { 'capfleet.device': step.device })
  const onClose = () => span.end(options.signal.aborted ? options.signal.reason : undefined)
  let timer: NodeJS.Timeout | undefined
  const startTimer = () => {
    timer = setTimeout(
      () => late.abort(deviceLate(step.device, 'begin to answer', startTimeoutMs)),
      startTimeoutMs,
    )
  }
  try {
    const readSize = isRelayed ? RELAY_READ_SIZE : MERGE_READ_SIZE
    const { target, deviceKind, mayPause = false, isForced } = step
    const asking = { caller, signal: AbortSignal.any([options.signal, late.signal]) }
    startTimer()
    if (isForced) await span.within(() => proveFilters(client, step, asking))
    clearTimeout(timer)
    // Each stream has its own time: a slow device begins none of them sooner.
    let hasAsked = false
    const onReopening = () => {
      hasAsked = true
      options.onReopening?.()
    }
    const shown = isForeign(deviceKind)
      ? await span.within(() =>
          awaitShownFilters(client, step, { ...showingOptions(options), ...asking, onReopening }),
        )
      : 'all'
    const onEnd = () => {
      noteEnded(client)
      onClose()
    }
    const reading = { isRelayed, onClose: onEnd, isEmpty: shown === 'nothing' }
    const open = async () => {
      clearTimeout(timer)
      startTimer()
      const stream = await span.within(() =>
        orRefusal(() =>
          client.openStream(target, { ...asking, readSize, mayPause, isForced, ...skippingOf(step) }),
        ),
      )
      return await startReading(step, stream, reading)
    }
    return await (hasAsked ? openAfterAnother(open, asking.signal) : open())
  } catch (error) {
    span.end(error)
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** A device reads the blocks before a place in pcapng without sending anything: 1 GB takes it about a second. */
const SKIPPING_MS = 600_000

function skippingOf({ after, target }: DownloadStep): { readonly silenceMs?: number } {
  return after !== undefined && /[?&]Format=pcapng(?:&|$)/.test(target) ? { silenceMs: SKIPPING_MS } : {}
}

function showingOptions({
  startTimeoutMs,
  patienceMs = startTimeoutMs,
  keeper,
  state = UNKNOWN_STATE,
}: OpenOptions): Pick<ShowingOptions, 'startTimeoutMs' | 'patienceMs' | 'keeper' | 'state'> {
  return { startTimeoutMs, patienceMs, keeper, state }
}

interface ReadingOptions {
  readonly isRelayed: boolean
  /** Whether it has no packets because its device had none with which to show that it filters. */
  readonly isEmpty: boolean
  readonly onClose: () => void
}

async function startReading(
  step: DownloadStep,
  stream: DeviceStream,
  { isRelayed, isEmpty, onClose }: ReadingOptions,
): Promise<Source> {
  const { device, after } = step
  try {
    refuseIgnored(step, stream)
    const { head, first } =
      after === undefined ? await orRefusal(() => readFirst(stream)) : restAsFile(device, stream, after)
    const encoding = await orRefusal(() => checkHead(step, head))
    if (encoding === 'pcapng') refuseUnprovedEnd(device, stream)
    if (isRelayed && after === undefined) refuseOtherEncoding(step, stream, encoding)
    if (isEmpty && encoding === 'none') await refusePackets(device, stream, first)
    const parts =
      isEmpty && isCompressed(encoding)
        ? await wholeWithoutPackets({ device, encoding, stream, first })
        : first
    const body = new SourceBody(stream, { device, encoding, first: parts, isRelayed })
    return {
      device,
      encoding,
      headers: stream.head.headers,
      body,
      header: encoding === 'none' ? head : NO_BYTES,
      [Symbol.dispose]: () => {
        onClose()
        body[Symbol.dispose]()
      },
    }
  } catch (error) {
    stream[Symbol.dispose]()
    throw error
  }
}

/**
 * Fails with device-protocol when a third-party device did not compress as it was asked to: the caller was promised another
 * file. One of ours says itself what it ignored.
 */
function refuseOtherEncoding(
  { device, target }: DownloadStep,
  { head }: DeviceStream,
  encoding: Encoding,
): void {
  if (kindOfAnswer(head.headers) === 'capfleet') return
  const asked = encodingAskedFor(target)
  if (encoding === asked) return
  if (asked === 'none')
    throw deviceProtocol(
      device,
      `compressed its answer with ${encoding} unasked; ask with ${encoding === 'gzip' ? 'Compression=fast' : 'Compression=zstd'}`,
    )
  const advice =
    'leave Compression out, or set ignores: [Compression] for the device, and the gateway compresses it'
  const did = encoding === 'none' ? 'did not compress its answer' : `compressed its answer with ${encoding}`
  throw deviceProtocol(device, `${did} where ${asked} was asked for; ${advice}`)
}

function encodingAskedFor(target: string): Encoding {
  const { searchParams } = new URL(target, 'http://device')
  const [compression, format] = [searchParams.get('Compression'), searchParams.get('Format')]
  return bodyEncodingOf({
    compression: COMPRESSIONS.find((one) => one === compression) ?? 'none',
    format: FILE_FORMATS.find((one) => one === format) ?? 'pcap',
  })
}

/**
 * Fails with device-protocol if the stream contains a packet. Reads it to its end; zeros used as padding are ignored, up
 * to EMPTY_BYTES_MAX.
 */
async function refusePackets(
  device: string,
  stream: DeviceStream,
  first: readonly BodyRead[],
): Promise<void> {
  const begin = Buffer.concat(first.flatMap(({ data }) => data))
  const padding = new Padding(device)
  padding.add(begin.subarray(PCAP_HEADER_BYTES))
  for (let read = await stream.next(); read !== undefined; read = await stream.next()) {
    for (const piece of read.data) padding.add(piece)
    read.release()
  }
}

/** Far more than a file without packets has, also one that zeros fill up. */
const EMPTY_BYTES_MAX = 1_048_576

/** What follows the header of a file without packets. */
class Padding {
  readonly #device: string
  #bytes = 0

  constructor(device: string) {
    this.#device = device
  }

  /** Fails with device-protocol if it is no padding, or if there is too much of it. */
  add(piece: Uint8Array): void {
    if (piece.some((byte) => byte !== 0)) throw hasPacketsNow(this.#device)
    this.#bytes += piece.length
    if (this.#bytes > EMPTY_BYTES_MAX) throw tooMuchPadding(this.#device)
  }
}

/** All parts of a compressed stream. Fails with device-protocol when it has a packet, or is broken. */
async function wholeWithoutPackets({
  device,
  encoding,
  stream,
  first,
}: {
  readonly device: string
  readonly encoding: CompressedEncoding
  readonly stream: DeviceStream
  readonly first: readonly BodyRead[]
}): Promise<readonly BodyRead[]> {
  const parts: BodyRead[] = []
  let bytes = 0
  const keep = (read: BodyRead) => {
    parts.push(copyOf(read))
    bytes += read.data.reduce((sum, piece) => sum + piece.length, 0)
    read.release()
    if (bytes > EMPTY_BYTES_MAX) throw tooMuchPadding(device)
  }
  for (const read of first) keep(read)
  for (let read = await stream.next(); read !== undefined; read = await stream.next()) keep(read)
  const chunks = Readable.from(parts.flatMap(({ data }) => data))[Symbol.asyncIterator]()
  const padding = new Padding(device)
  let position = 0
  for await (const chunk of decode({ device, encoding, chunks })) {
    padding.add(chunk.subarray(Math.max(0, PCAP_HEADER_BYTES - position)))
    position += chunk.length
  }
  return parts
}

function tooMuchPadding(device: string): CapfleetError {
  return deviceProtocol(
    device,
    `had no packets when its filtering was checked, and now sends more than ${bytesText(EMPTY_BYTES_MAX)} after the header of the file; ask again`,
  )
}

function hasPacketsNow(device: string): CapfleetError {
  return deviceProtocol(device, 'had no packets when its filtering was checked, and has some now; ask again')
}

/** The read in memory of its own. */
function copyOf({ data, framed, open }: BodyRead): BodyRead {
  return {
    data: [Buffer.concat(data)],
    framed: framed.map((piece) => Buffer.from(piece)),
    open,
    release: () => undefined,
  }
}

/** The file header, or the available start of a compressed stream, and the parts in which it arrived. */
interface FirstParts {
  readonly head: Buffer
  readonly first: readonly BodyRead[]
}

/** Reads until there are enough bytes to identify the stream, or it has ended. */
async function readFirst(stream: DeviceStream): Promise<FirstParts> {
  const first: BodyRead[] = []
  let head: Buffer = NO_BYTES
  while (head.length < PCAP_HEADER_BYTES) {
    const read = await stream.next()
    if (read === undefined) break
    const bytes = read.data.reduce((sum, piece) => sum + piece.length, 0)
    head = Buffer.concat([head, ...read.data], Math.min(head.length + bytes, PCAP_HEADER_BYTES))
    if (bytes >= PCAP_HEADER_BYTES) first.push(read)
    else {
      // Many tiny parts must not occupy the buffers that the next ones need.
      first.push(copyOf(read))
      read.release()
    }
  }
  return { head, first }
}

/** Turns the rest of a body into a file again, by prepending the header, which the device leaves out. */
function restAsFile(device: string, stream: DeviceStream, { bytes, header }: AfterBytes): FirstParts {
  if (stream.head.headers['capfleet-after'] !== String(bytes)) throw cannotSkip(device)
  const read = { data: [header], framed: [], open: NO_OPEN_CHUNK, release: () => undefined }
  return { head: header, first: [read] }
}

/** The device would have to send its stream again from the first byte; the gateway does not request that. */
function cannotSkip(device: string): CapfleetError {
  return new CapfleetError(
    'not-implemented',
    `device ${device} cannot start inside a download (After=), so the download cannot be resumed; request the rest with TSBegin`,
    { members: { devices: [device] }, cause: CANNOT_CONTINUE },
  )
}

/** Fails with device-protocol if the device does not confirm that its answer is whole: its blocks are not followed. */
function refuseUnprovedEnd(device: string, stream: DeviceStream): void {
  if (announcesCompletion(stream)) return
  throw deviceProtocol(
    device,
    'does not announce the trailer Capfleet-Complete, without which the end of pcapng is not proved; ask without Format',
  )
}

const NO_BYTES = Buffer.alloc(0)

function checkHead({ device, target }: DownloadStep, head: Buffer): Encoding {
  const compression = compressionOf(head)
  if (compression !== undefined) return compression
  if (encodingAskedFor(target) === 'pcapng') {
    if (isPcapng(head)) return 'pcapng'
    throw deviceProtocol(device, 'did not answer with pcapng; ask without Format')
  }
  try {
    parsePcapHeader(head, `device ${device}`)
    return 'none'
  } catch (error) {
    if (!(error instanceof CapfleetError)) throw error
    throw new CapfleetError(error.code, error.message, { members: { devices: [device] } })
  }
}
