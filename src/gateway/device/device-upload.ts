/**
 * Passes a file that a client uploads on to a device, no faster than the device takes it. The device is asked first
 * (Expect: 100-continue): nothing is read from the client before the device has accepted the request. A connection of
 * its own, and never sent twice.
 */
import { addAbortListener } from 'node:events'
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { UploadedBody } from '../../shared/http/uploaded-body.ts'
import type { Device } from './device.ts'
import { deviceBrokeOff, deviceFailure, deviceLate, deviceProtocol } from './device-failure.ts'
import { currentTraceHeaders } from './device-request.ts'

type SentUpload = Pick<UploadedBody, 'announcedBytes' | 'pieces'>

export interface PassedUpload {
  /** Path and query. */
  readonly target: string
  /** Label of the caller. */
  readonly caller: string
  readonly file: SentUpload
  /** A device that takes longer to accept the request, or more of the file, has failed. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export interface UploadAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** An import of the largest file takes minutes; TCP keep-alive notices earlier that the machine is gone. */
const IMPORT_LIMIT_MS = 3_600_000
const KEEP_ALIVE_MS = 20_000
const ANSWER_BYTES_MAX = 1_048_576
/** Interim answers (1xx) besides the one that is waited for. */
const INTERIM_ANSWERS_MAX = 100

/**
 * The device's answer, whatever its status; it may come before the end of the file. Fails with device-unreachable,
 * device-timeout, device-protocol, like UploadedBody.pieces(), or with the signal's reason.
 */
export async function passUpload(device: Device, upload: PassedUpload): Promise<UploadAnswer> {
  const { file, timeoutMs, signal } = upload
  signal.throwIfAborted()
  const sent = sendHead(device, upload)
  using _abort = addAbortListener(signal, () => sent.destroy(signal.reason as Error))
  try {
    const answered = answerOf(device, sent)
    // Its failure is reported where it is awaited.
    answered.catch(() => undefined)
    const asked = new Promise<undefined>((resolve) => sent.once('continue', () => resolve(undefined)))
    const first = await within(device, 'accept the upload', { timeoutMs, work: [answered, asked] })
    if (first === undefined) await sendFile(device, sent, { file, answered, timeoutMs })
    const answer = await within(device, 'answer', { timeoutMs: IMPORT_LIMIT_MS, work: [answered] })
    return await within(device, 'send the rest of its answer', {
      timeoutMs,
      work: [readAnswer(device, answer)],
    })
  } finally {
    sent.destroy()
  }
}

function sendHead(device: Device, { target, caller, file }: PassedUpload): ClientRequest {
  const { url, connectOptions } = device
  const length = file.announcedBytes
  const options = {
    method: 'POST',
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port,
    path: device.pathOf(target),
    headers: {
      host: url.host,
      authorization: device.authorization(),
      'capfleet-caller': caller,
      'content-type': 'application/octet-stream',
      ...(length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(length) }),
      expect: '100-continue',
      connection: 'close',
      ...currentTraceHeaders(),
    },
  }
  const sent =
    url.protocol === 'https:'
      ? requestHttps({ ...options, agent: new HttpsAgent(connectOptions) })
      : requestHttp({ ...options, ...connectOptions, agent: false })
  sent.once('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS))
  sent.flushHeaders()
  return sent
}

function answerOf({ name }: Device, sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let interim = 0
    sent.on('information', () => {
      interim += 1
      if (interim > INTERIM_ANSWERS_MAX) sent.destroy(deviceProtocol(name, 'sent too many interim answers'))
    })
    sent.once('upgrade', (_answer, socket) => {
      socket.destroy()
      reject(deviceProtocol(name, 'switched protocols without being asked'))
    })
    sent.once('response', resolve)
    sent.on('error', (error) => reject(deviceFailure(name, error)))
    sent.once('close', () => reject(deviceBrokeOff(name)))
  })
}

interface SentFile {
  readonly file: SentUpload
  readonly answered: Promise<IncomingMessage>
  readonly timeoutMs: number
}

/** Ends early, without an error, when the device has answered or failed. */
async function sendFile(
  device: Device,
  sent: ClientRequest,
  { file, answered, timeoutMs }: SentFile,
): Promise<void> {
  let isOver = false
  let wake = (): void => undefined
  const end = (): void => {
    isOver = true
    wake()
  }
  answered.then(end, end)
  sent.on('drain', () => wake())
  for await (const piece of file.pieces()) {
    if (isOver) return
    if (sent.write(piece)) continue
    const drained = new Promise<void>((resolve) => {
      wake = resolve
    })
    await within(device, 'accept more of the file', { timeoutMs, work: [drained] })
  }
  if (!isOver) sent.end()
}

interface Limited<Value> {
  readonly timeoutMs: number
  readonly work: readonly Promise<Value>[]
}

/** The first of `work`; `what` continues "device X did not ...". */
async function within<Value>(
  { name }: Device,
  what: string,
  { timeoutMs, work }: Limited<Value>,
): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(deviceLate(name, what, timeoutMs)), timeoutMs)
  try {
    return await Promise.race([...work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

async function readAnswer({ name }: Device, answer: IncomingMessage): Promise<UploadAnswer> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > ANSWER_BYTES_MAX)
        throw deviceProtocol(
          name,
          `sent more than ${ANSWER_BYTES_MAX} bytes, more than the limit for this answer`,
        )
      pieces.push(piece)
    }
  } catch (error) {
    throw deviceFailure(name, error)
  }
  const headers = Object.entries(answer.headersDistinct).map(([key, values = []]) => [key, values.join(', ')])
  return {
    status: answer.statusCode ?? 0,
    headers: Object.fromEntries(headers) as Record<string, string>,
    body: Buffer.concat(pieces),
  }
}
