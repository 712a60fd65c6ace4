/**
 * A TCP proxy that can lose the network: while it is cut, both directions are black holes (no byte,
 * no end, no reset arrives; new connections are taken and go nowhere); when it is mended, all that
 * was sent arrives, as with TCP's own repetition.
 */
import { once } from 'node:events'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'

/** Of the real server: a port of this machine or a Unix socket. */
export type ProxyTarget = { readonly port: number } | { readonly path: string }

interface Pair {
  readonly client: Socket
  readonly upstream: Socket
  /** What the client sent while the network was cut, in order. */
  readonly held: Buffer[]
  /** The client has gone; the upstream does not know while the network is cut. */
  clientGone: boolean
}

export class FaultProxy implements AsyncDisposable {
  readonly #target: ProxyTarget
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  readonly #refused = new Set<Socket>()
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

  /** Whether the upstream's connection from this local port has no client any more. */
  isStranded(localPort: number): boolean {
    return [...this.#pairs].some(({ upstream, clientGone }) => clientGone && upstream.localPort === localPort)
  }

  cut(): void {
    this.#isCut = true
    for (const { upstream } of this.#pairs) upstream.pause()
  }

  mend(): void {
    this.#isCut = false
    for (const socket of this.#refused) this.#join(socket)
    this.#refused.clear()
    for (const pair of this.#pairs) {
      for (const bytes of pair.held.splice(0)) pair.upstream.write(bytes)
      if (pair.clientGone) pair.upstream.destroy()
      else pair.upstream.resume()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#refused) socket.destroy()
    for (const { client, upstream } of this.#pairs) {
      client.destroy()
      upstream.destroy()
    }
    await closed
  }

  #accept(client: Socket): void {
    client.setNoDelay()
    client.on('error', () => undefined)
    if (this.#isCut) {
      this.#refused.add(client)
      client.once('close', () => this.#refused.delete(client))
    } else this.#join(client)
  }

  #join(client: Socket): void {
    const upstream = createConnection({ ...this.#target, allowHalfOpen: true, noDelay: true })
    const pair: Pair = { client, upstream, held: [], clientGone: false }
    this.#pairs.add(pair)
    upstream.on('error', () => undefined)
    client.on('data', (bytes: Buffer) => {
      if (this.#isCut) pair.held.push(bytes)
      else upstream.write(bytes)
    })
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
  }

  #clientLeft(pair: Pair): void {
    pair.clientGone = true
    if (!this.#isCut) pair.upstream.destroy()
  }
}
