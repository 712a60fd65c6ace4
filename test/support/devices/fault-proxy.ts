/**
 * A TCP proxy that can simulate a network cut: during the cut, both directions are black holes (no byte, no FIN, no
 * RST arrives; new connections are accepted and lead nowhere). After the cut, everything sent meanwhile arrives, as
 * with TCP retransmission, including from clients that have since closed or died, but not from clients that have reset
 * their connection, because the kernel then retransmits nothing.
 */
import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'

/** The real server: a port on this machine or a Unix socket. */
export type ProxyTarget = { readonly host: string; readonly port: number } | { readonly path: string }

interface Pair {
  readonly client: Socket
  readonly upstream: Socket
  /** Sent by the client during the cut, in order. */
  readonly held: Buffer[]
  /** The client has gone; the upstream does not notice during the cut. */
  clientGone: boolean
}

/** A client that connected during the cut, and what it has sent. */
interface Refused {
  readonly client: Socket
  readonly held: Buffer[]
}

export class FaultProxy implements AsyncDisposable {
  readonly #target: ProxyTarget
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  readonly #refused = new Set<Refused>()
  #isCut = false

  private constructor(target: ProxyTarget) {
    this.#target = target
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client))
  }

  static async start(target: ProxyTarget): Promise<FaultProxy> {
    const proxy = new FaultProxy(target)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Whether the upstream connection from this local port no longer has a client. */
  isStranded(localPort: number): boolean {
    return [...this.#pairs].some(({ upstream, clientGone }) => clientGone && upstream.localPort === localPort)
  }

  /** New connections that have sent data during the cut. */
  get held(): number {
    return [...this.#refused].filter(({ held }) => held.length > 0).length
  }

  cut(): void {
    this.#isCut = true
    for (const { upstream } of this.#pairs) upstream.pause()
  }

  mend(): void {
    this.#isCut = false
    for (const pair of this.#pairs) this.#deliver(pair)
    for (const refused of this.#refused) this.#deliver(this.#join(refused))
    this.#refused.clear()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const { client } of this.#refused) client.destroy()
    for (const { client, upstream } of this.#pairs) {
      client.destroy()
      upstream.destroy()
    }
    await closed
  }

  #accept(client: Socket): void {
    client.setNoDelay()
    client.on('error', () => undefined)
    if (!this.#isCut) {
      this.#join({ client, held: [] })
      return
    }
    const refused: Refused = { client, held: [] }
    this.#refused.add(refused)
    client.on('data', (bytes: Buffer) => refused.held.push(bytes))
    client.once('error', () => this.#refused.delete(refused))
  }

  #join({ client, held }: Refused): Pair {
    client.removeAllListeners('data')
    const upstream = createConnection({ ...this.#target, allowHalfOpen: true, noDelay: true })
    const pair: Pair = { client, upstream, held, clientGone: client.readableEnded }
    this.#pairs.add(pair)
    upstream.on('error', () => undefined)
    client.on('data', (bytes: Buffer) => {
      if (this.#isCut) pair.held.push(bytes)
      else upstream.write(bytes)
    })
    client.once('error', () => pair.held.splice(0))
    upstream.on('data', (bytes: Buffer) => {
      if (client.write(bytes) || this.#isCut) return
      upstream.pause()
      client.once('drain', () => {
        if (!this.#isCut) upstream.resume()
      })
    })
    client.once('end', () => this.#clientLeft(pair))
    client.once('close', () => this.#clientLeft(pair))
    upstream.once('end', () => client.end())
    upstream.once('close', () => {
      this.#pairs.delete(pair)
      if (!client.writableEnded) client.resetAndDestroy()
    })
    return pair
  }

  /** Delivers what was held during the cut, and the client's end. */
  #deliver(pair: Pair): void {
    const { upstream, held, clientGone } = pair
    const isAsked = held.length > 0
    for (const bytes of held.splice(0)) upstream.write(bytes)
    // The server receives what was sent before the end, answers it, and only then sees the end.
    if (clientGone && isAsked) upstream.once('data', () => upstream.destroy())
    else if (clientGone) upstream.destroy()
    upstream.resume()
  }

  #clientLeft(pair: Pair): void {
    pair.clientGone = true
    if (!this.#isCut) pair.upstream.destroy()
  }
}
