/** One opened device stream: its answer was 200 and it has begun with a PCAP (or compressed) header. */
import { CapfleetError } from '../base/error.ts'
import type { DeviceAnswer, DeviceClient } from '../fleet/device-client.ts'
import { deviceFailure, deviceProtocol } from '../fleet/device-failure.ts'
import type { DownloadStep } from '../fleet/plan.ts'
import { PCAP_HEADER_BYTES, parsePcapHeader } from '../pcap/pcap-header.ts'
import type { Encoding } from '../query/query-values.ts'

export interface Source extends Disposable {
  readonly device: string
  /** What the stream is, by its first bytes. */
  readonly encoding: Encoding
  readonly headers: DeviceAnswer['headers']
  /**
   * All bytes from the first on, once. Throws device-unreachable, device-timeout or device-protocol
   * when the stream breaks, ends without the completion trailer that it announced, or the signal's
   * reason.
   */
  readonly chunks: AsyncIterableIterator<Buffer>
  /** The device's trailers, after the last chunk. */
  readonly trailers: DeviceAnswer['trailers']
}

export interface OpenOptions {
  /** Ends the stream too, not only the opening. */
  readonly signal: AbortSignal
  /** The device must have sent the header of the stream within this time. */
  readonly startTimeoutMs: number
  /** Until when (performance.now()) a device whose slots are taken by others is asked again. */
  readonly busyUntilMs: number
}

const BUSY_FIRST_MS = 50
const BUSY_MOST_MS = 1_000

/**
 * Opens the stream of one step. The caller must dispose the source. Fails with device-unreachable,
 * device-timeout, device-protocol, device-rejected, or with what the device's own answer says.
 * "download-slots-exhausted" means that somebody outside of the scheduler holds a slot that a lease
 * of ours was for: the lease stays, the device is asked again.
 */
export async function openSource(
  client: DeviceClient,
  step: DownloadStep,
  options: OpenOptions,
): Promise<Source> {
  for (let pauseMs = BUSY_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, BUSY_MOST_MS)) {
    try {
      return await openOnce(client, step, options)
    } catch (error) {
      const busy = error instanceof CapfleetError && error.code === 'download-slots-exhausted'
      if (!busy || performance.now() + pauseMs > options.busyUntilMs) throw error
    }
    await pause(pauseMs, options.signal)
  }
}

async function openOnce(client: DeviceClient, step: DownloadStep, options: OpenOptions): Promise<Source> {
  const abort = new AbortController()
  const onAbort = () => abort.abort(options.signal.reason)
  options.signal.addEventListener('abort', onAbort, { once: true })
  if (options.signal.aborted) onAbort()
  const late = setTimeout(
    () => abort.abort(tooLate(step.device, options.startTimeoutMs)),
    options.startTimeoutMs,
  )
  const close = () => {
    options.signal.removeEventListener('abort', onAbort)
    abort.abort(new Error('the source was closed'))
  }
  try {
    const answer = await client.get(step.target, abort.signal)
    if (answer.status !== 200) throw await client.refusalOf(answer)
    return await startReading(step.device, answer, abort.signal, close)
  } catch (error) {
    close()
    throw error
  } finally {
    clearTimeout(late)
  }
}

async function startReading(
  device: string,
  answer: DeviceAnswer,
  signal: AbortSignal,
  close: () => void,
): Promise<Source> {
  const body = readBody(device, answer, signal)
  const head = await readHead(body)
  return {
    device,
    encoding: checkHead(device, head),
    headers: answer.headers,
    chunks: withHead(head, body),
    trailers: answer.trailers,
    [Symbol.dispose]: () => {
      close()
      answer.body.destroy()
    },
  }
}

async function* readBody(device: string, answer: DeviceAnswer, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of answer.body) yield chunk
  } catch (error) {
    // The client library wraps the reason to abort into an error of its own.
    if (signal.aborted) throw signal.reason
    throw deviceFailure(device, error)
  }
  if (announcesCompletion(answer) && answer.trailers['capfleet-complete'] !== '1') {
    throw deviceProtocol(device, 'ended its stream without the completion trailer: the stream was cut')
  }
}

/** Our appliance ends a whole stream with a trailer; a proxy in between may lose the announcement. */
function announcesCompletion(answer: DeviceAnswer): boolean {
  return String(answer.headers.trailer ?? '')
    .toLowerCase()
    .includes('capfleet-complete')
}

/** At least a PCAP header, unless the stream is shorter. */
async function readHead(body: AsyncIterator<Buffer>): Promise<Buffer> {
  let head: Buffer = Buffer.alloc(0)
  while (head.length < PCAP_HEADER_BYTES) {
    const next = await body.next()
    if (next.done === true) break
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value])
  }
  return head
}

const GZIP_MAGIC = Buffer.of(0x1f, 0x8b)
const ZSTD_MAGIC = Buffer.of(0x28, 0xb5, 0x2f, 0xfd)

function checkHead(device: string, head: Buffer): Encoding {
  if (head.subarray(0, 2).equals(GZIP_MAGIC)) return 'gzip'
  if (head.subarray(0, 4).equals(ZSTD_MAGIC)) return 'zstd'
  try {
    parsePcapHeader(head, `device ${device}`)
    return 'none'
  } catch (error) {
    if (!(error instanceof CapfleetError)) throw error
    throw new CapfleetError(error.code, error.message, { members: { devices: [device] } })
  }
}

async function* withHead(head: Buffer, body: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head
  yield* body
}

function tooLate(device: string, limitMs: number): CapfleetError {
  return new CapfleetError(
    'device-timeout',
    `device ${device} did not begin to answer within ${limitMs / 1_000} s`,
    { members: { devices: [device] } },
  )
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
  })
}
