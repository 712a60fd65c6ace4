/** A client on a raw socket: sends the given bytes, and reads answers as bytes. */
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { WAIT_LIMIT_MS } from '../test-limits.ts'

export interface RawAnswer {
  readonly status: number
  readonly body: Buffer
  /** Whether the body is complete according to its framing. */
  readonly isWhole: boolean
}

export async function connectTo(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = createConnection({ host: hostname, port: Number(port) })
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  return socket
}

/** Sends everything at once and reads until the server closes or resets the connection. */
export async function rawExchange(url: string, text: string | Buffer): Promise<Buffer> {
  const socket = await connectTo(url)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write(text)
  const timer = setTimeout(() => socket.destroy(), WAIT_LIMIT_MS)
  // once() would reject on a reset.
  await new Promise<void>((resolve) => socket.once('close', () => resolve()))
  clearTimeout(timer)
  return Buffer.concat(chunks)
}

/** The answers in the order of arrival. */
export function rawAnswers(bytes: Buffer): readonly RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = bytes
  while (rest.length > 0) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd < 0) throw new Error(`no answer begins with ${rest.subarray(0, 40).toString('latin1')}`)
    const head = rest.subarray(0, headEnd).toString('latin1')
    const status = /^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]
    if (status === undefined) throw new Error(`no status line: ${head.slice(0, 40)}`)
    const { body, isWhole, bodyBytes } = bodyOf(head, rest.subarray(headEnd + 4))
    answers.push({ status: Number(status), body, isWhole })
    rest = rest.subarray(headEnd + 4 + bodyBytes)
  }
  return answers
}

interface RawBody {
  readonly body: Buffer
  readonly isWhole: boolean
  /** Bytes of the body on the wire, including framing. */
  readonly bodyBytes: number
}

function bodyOf(head: string, rest: Buffer): RawBody {
  const length = /^content-length: (\d+)/im.exec(head)?.[1]
  if (length !== undefined) {
    const body = rest.subarray(0, Number(length))
    return { body, isWhole: body.length === Number(length), bodyBytes: body.length }
  }
  if (/^transfer-encoding: chunked/im.test(head)) return unchunked(rest)
  return { body: rest, isWhole: true, bodyBytes: rest.length }
}

function unchunked(rest: Buffer): RawBody {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf('\r\n', at)
    const size = Number.parseInt(rest.subarray(at, Math.max(at, lineEnd)).toString('latin1'), 16)
    if (lineEnd < 0 || Number.isNaN(size))
      return { body: Buffer.concat(parts), isWhole: false, bodyBytes: rest.length }
    if (size === 0) {
      const end = rest.indexOf('\r\n\r\n', at)
      const isWhole = end >= 0
      return { body: Buffer.concat(parts), isWhole, bodyBytes: isWhole ? end + 4 : rest.length }
    }
    parts.push(rest.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}
