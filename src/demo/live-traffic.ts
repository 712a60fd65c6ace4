/** Live packets for the demo: datagrams that this process sends to itself over the loopback interface. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { capabilitiesIn, hasCapability } from '../../appliance/doctor/capabilities.ts'

const ADDRESS = '127.0.0.1'
const BURST = 10
const BURST_INTERVAL_MS = 100
const PAYLOAD_MAX_BYTES = 400

/** Sends from `open` until disposed. */
export class LiveTraffic implements AsyncDisposable {
  readonly #socket: Socket
  readonly #timer: NodeJS.Timeout
  #sent = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#timer = setInterval(() => this.#sendBurst(), BURST_INTERVAL_MS)
  }

  static async open(): Promise<LiveTraffic> {
    const socket = createSocket('udp4')
    socket.bind(0, ADDRESS)
    await once(socket, 'listening')
    return new LiveTraffic(socket)
  }

  /**
   * The setting of a capture port that sees exactly these datagrams: if it also saw the demo's own connections,
   * following the capture would itself be captured.
   */
  get portSetting(): { readonly port: number; readonly interface: string; readonly filter: string } {
    return { port: 0, interface: 'lo', filter: `udp port ${this.#socket.address().port}` }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#socket.close()
    await once(this.#socket, 'close')
  }

  #sendBurst(): void {
    for (let count = 0; count < BURST; count++) {
      this.#sent += 1
      const text = `packet ${this.#sent} of the capfleet demo `
      const length = text.length + ((this.#sent * 7) % PAYLOAD_MAX_BYTES)
      this.#socket.send(text.padEnd(length, '.'), this.#socket.address().port, ADDRESS, () => undefined)
    }
  }
}

/** Whether a recorder run by this process's user may capture. */
export async function mayCapture(): Promise<boolean> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
  return hasCapability(capabilitiesIn(status), 'CAP_NET_RAW')
}
