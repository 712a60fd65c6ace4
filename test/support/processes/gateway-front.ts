/**
 * One address in front of gateways that come and go, like a load balancer. It forwards only a limited number of bytes
 * of an answer until the limit is raised, so that a download stops where a test wants to cut it.
 */
import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'

export class GatewayFront implements AsyncDisposable {
  readonly #server: Server
  readonly #clients = new Set<Socket>()
  /** Target of new connections. */
  targetPort = 0
  /** Bytes of an answer that are forwarded on one connection. */
  limitBytes = Number.POSITIVE_INFINITY

  private constructor() {
    this.#server = createServer((client) => this.#accept(client))
  }

  static async start(): Promise<GatewayFront> {
    const front = new GatewayFront()
    front.#server.listen(0, '127.0.0.1')
    await once(front.#server, 'listening')
    return front
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Breaks all connections, as if their gateway had died. */
  hangUp(): void {
    for (const client of this.#clients) client.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.hangUp()
    this.#server.close()
  }

  #accept(client: Socket): void {
    const gateway = createConnection(this.targetPort, '127.0.0.1')
    this.#clients.add(client)
    const end = (): void => {
      this.#clients.delete(client)
      client.destroy()
      gateway.destroy()
    }
    client.on('error', end).on('close', end).pipe(gateway)
    gateway.on('error', end).on('close', end)
    let leftBytes = this.limitBytes
    gateway.on('data', (chunk: Buffer) => {
      const passed = chunk.subarray(0, Math.min(chunk.length, leftBytes))
      leftBytes -= passed.length
      if (passed.length > 0) client.write(passed)
      if (leftBytes === 0) gateway.pause()
      else if (client.writableNeedDrain) {
        gateway.pause()
        client.once('drain', () => leftBytes > 0 && gateway.resume())
      }
    })
  }
}
