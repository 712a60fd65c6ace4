/** A device on raw sockets that behaves well until an attack changes that. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { OWN_LOOPBACK } from '../support/network/own-loopback.ts'

export interface DeviceQuestion {
  /** Path and query. */
  readonly target: string
  readonly socket: Socket
}

interface DeviceSpending {
  connections: number
  sentBytes: number
  receivedBytes: number
}

export type Behaviour = (question: DeviceQuestion) => void

const HONEST: Readonly<Record<string, () => string>> = {
  '/api/v1/system/version': () => '{"version":"1.2.3","device":"evil","build":""}',
  '/api/v1/system/status': () => '{"timestamp":1,"ver":"1","cat":{"cat_EnableCnt":0}}',
  '/api/v1/system/time_current': () => String(BigInt(Date.now()) * 1_000_000n),
  '/sysmaster/stats_summary': () => '{"packets_oldest_ts":"1"}',
  '/stream/list': () => '{"Path":"/capture/","StreamList":true,"List":[]}',
}

export class AttackingDevice {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #behaviour: Behaviour = behaveWell
  #spent: DeviceSpending | undefined

  private constructor() {
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static async start(): Promise<AttackingDevice> {
    const device = new AttackingDevice()
    device.#server.listen(0, OWN_LOOPBACK)
    await once(device.#server, 'listening')
    return device
  }

  get url(): string {
    return `http://${OWN_LOOPBACK}:${(this.#server.address() as AddressInfo).port}`
  }

  /** From now on. A request that `behaviour` leaves to behaveWell is answered properly. */
  behave(behaviour: Behaviour): void {
    this.#behaviour = behaviour
    this.#spent = { connections: 0, sentBytes: 0, receivedBytes: 0 }
  }

  /**
   * Behaves well again. Returns the traffic over its connections since it stopped behaving well; earlier traffic is no
   * attack.
   */
  calmDown(): DeviceSpending {
    this.#behaviour = behaveWell
    for (const socket of this.#sockets) this.#forget(socket)
    const spent = this.#spent
    this.#spent = undefined
    return spent ?? { connections: 0, sentBytes: 0, receivedBytes: 0 }
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    if (this.#spent !== undefined) this.#spent.connections += 1
    socket.on('error', () => undefined)
    socket.once('close', () => this.#forget(socket))
    let text = ''
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1')
      if (!text.includes('\r\n\r\n')) return
      const target = text.split(' ', 2)[1] ?? '/'
      text = ''
      this.#behaviour({ target, socket })
    })
  }

  #forget(socket: Socket): void {
    if (!this.#sockets.delete(socket)) return
    if (this.#spent !== undefined) {
      this.#spent.sentBytes += Math.max(0, socket.bytesWritten - socket.writableLength)
      this.#spent.receivedBytes += socket.bytesRead
    }
    socket.destroy()
  }
}

export function behaveWell({ target, socket }: DeviceQuestion): void {
  const answer = HONEST[target.split('?', 1)[0] ?? '']
  if (answer === undefined)
    answerWith(socket, '{"code":"not-found","detail":"no such path"}', '404 Not Found')
  else answerWith(socket, answer())
}

/** A JSON answer with its length; the connection is closed after it. */
export function answerWith(socket: Socket, body: string | Buffer, status = '200 OK'): void {
  const bytes = Buffer.from(body)
  socket.write(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${bytes.length}\r\nConnection: close\r\n\r\n`,
  )
  endWith(socket, bytes)
}

const PIECE_BYTES = 65_536

/** Sends piece by piece as the client reads, so that unread data is not counted; then ends. */
export function endWith(socket: Socket, bytes: Buffer): void {
  let at = 0
  const send = (): void => {
    while (at < bytes.length) {
      const piece = bytes.subarray(at, at + PIECE_BYTES)
      at += piece.length
      if (!socket.write(piece)) return
    }
    socket.off('drain', send)
    socket.end()
  }
  socket.on('drain', send)
  send()
}
