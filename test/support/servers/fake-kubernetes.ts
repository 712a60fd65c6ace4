/** A real HTTP server that implements list and watch of EndpointSlices, like the Kubernetes API. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'

export interface FakePod {
  readonly name: string
  readonly address: string
  readonly node?: string
  readonly ready?: boolean
  readonly terminating?: boolean
}

/** One slice of this name with these pods. */
export function makeSlice(name: string, pods: readonly FakePod[], port = 8081) {
  return {
    metadata: { name },
    addressType: 'IPv4',
    endpoints: pods.map((pod) => ({
      addresses: [pod.address],
      conditions: { ready: pod.ready ?? true, terminating: pod.terminating ?? false },
      targetRef: { kind: 'Pod', name: pod.name },
      nodeName: pod.node ?? null,
    })),
    ports: [
      { name: 'metrics', port: 9_090 },
      { name: 'api', port },
    ],
  }
}

type Slice = ReturnType<typeof makeSlice>

export class FakeKubernetes implements AsyncDisposable {
  /** Other tokens get 401. */
  token = 'pod-token'
  readonly urls: string[] = []
  /** Answers lists with 500. */
  isBroken = false
  readonly #server: Server
  readonly #slices = new Map<string, Slice>()
  readonly #watchers = new Set<ServerResponse>()
  readonly #scheme: string
  /** Events sent to watchers, for those that start at an earlier version. */
  readonly #told: { readonly version: number; readonly line: string }[] = []
  #version = 100

  private constructor(tls: { readonly key: Buffer; readonly cert: Buffer } | undefined) {
    this.#scheme = tls === undefined ? 'http' : 'https'
    const answer = (req: IncomingMessage, res: ServerResponse) => this.#answer(req, res)
    this.#server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer)
  }

  static async start(tls?: { readonly key: Buffer; readonly cert: Buffer }): Promise<FakeKubernetes> {
    const fake = new FakeKubernetes(tls)
    fake.#server.listen(0, '127.0.0.1')
    await once(fake.#server, 'listening')
    return fake
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get watchers(): number {
    return this.#watchers.size
  }

  put(slice: Slice): void {
    const type = this.#slices.has(slice.metadata.name) ? 'MODIFIED' : 'ADDED'
    this.#slices.set(slice.metadata.name, slice)
    this.#tell(type, slice)
  }

  remove(name: string): void {
    const slice = this.#slices.get(name)
    this.#slices.delete(name)
    if (slice !== undefined) this.#tell('DELETED', slice)
  }

  /** A change without an event to the watchers, which are then told that they are too late. */
  putUnseen(slice: Slice): void {
    this.#slices.set(slice.metadata.name, slice)
    for (const res of this.#watchers)
      res.end(
        `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } })}\n`,
      )
  }

  bookmark(): void {
    this.#tell('BOOKMARK', { metadata: {} })
  }

  /** Ends all watches normally. */
  endWatches(): void {
    for (const res of this.#watchers) res.end()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  #tell(type: string, object: unknown): void {
    this.#version += 1
    const line = `${JSON.stringify({ type, object })}\n`
    this.#told.push({ version: this.#version, line })
    for (const res of this.#watchers) res.write(line)
  }

  #answer(req: IncomingMessage, res: ServerResponse): void {
    const { url = '', headers } = req
    this.urls.push(url)
    const isKnown = headers.authorization === `Bearer ${this.token}`
    if (!isKnown || this.isBroken) {
      res.writeHead(isKnown ? 500 : 401).end('{"kind":"Status"}')
      return
    }
    const query = new URL(url, this.url).searchParams
    if (query.get('watch') !== '1') {
      const metadata = { resourceVersion: String(this.#version) }
      res.end(JSON.stringify({ kind: 'EndpointSliceList', metadata, items: [...this.#slices.values()] }))
      return
    }
    this.#watchers.add(res)
    res.once('close', () => this.#watchers.delete(res))
    res.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders()
    const from = Number(query.get('resourceVersion'))
    for (const { version, line } of this.#told) if (version > from) res.write(line)
  }
}
