/** An HTTP server that relays every request to one device, and reports how each relay ended. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Device } from '../../../src/gateway/device/device.ts'
import { DeviceClient } from '../../../src/gateway/device/device-client.ts'
import { RelayedBody } from '../../../src/gateway/fetch/body/relayed-body.ts'
import type { ReopenStep } from '../../../src/gateway/fetch/stream/leased-streams.ts'
import { openSource } from '../../../src/gateway/fetch/stream/source.ts'
import { planDownload } from '../../../src/gateway/fleet/plan/plan.ts'
import { withinBounds } from '../../../src/gateway/fleet/plan/within-bounds.ts'
import { endTrailers } from '../../../src/gateway/serve/download-trailers.ts'
import { relayDownload } from '../../../src/gateway/serve/relay.ts'
import { UNBOUNDED } from '../../../src/shared/base/caller.ts'
import { Secret } from '../../../src/shared/base/secret.ts'
import { followConnections } from '../../../src/shared/http/reset-connection.ts'
import { parseDownloadQuery } from '../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../src/shared/query/parse-query-string.ts'
import type { TempCertificate } from '../access/temp-certificate.ts'

export interface RelayFrontOptions {
  readonly idleTimeoutMs?: number
  readonly clientIdleTimeoutMs?: number
  readonly digest?: boolean
  /** CA certificates (PEM) for the device. */
  readonly ca?: string
  /** Its own certificate, for TLS to the clients. */
  readonly certificate?: TempCertificate
  /** Called for every relay that begins. */
  readonly onRelay?: (relay: FrontRelay) => void
}

/** A running relay. */
export interface FrontRelay {
  readonly body: RelayedBody
  /** Bytes of the body that were written. */
  sentBytes(): number
  /** Asks the device again. */
  readonly reopen: ReopenStep
}

export interface RelayEnd {
  readonly bytes: number
  readonly sha256: string | undefined
}

export interface RelayFront extends AsyncDisposable {
  readonly url: string
  /** How the relays ended, in order: their end, or the error. */
  readonly ends: readonly (RelayEnd | Error)[]
  /** Resolves when this many have ended. */
  ended(count: number): Promise<void>
}

const GONE = new Error('the client has gone')
const ANNOUNCED = { Trailer: 'Capfleet-Complete, Capfleet-Packets, Capfleet-Bytes' }
const QUERY = parseDownloadQuery('timerange', parseQueryString('TSBegin=0&TSEnd=1'), {
  zone: 'UTC',
  nowNs: 0n,
})
const PLAN = planDownload(withinBounds(QUERY, UNBOUNDED), ['d0'], 1)

export async function startRelayFront(
  deviceUrl: string,
  options: RelayFrontOptions = {},
): Promise<RelayFront> {
  const {
    idleTimeoutMs = 5_000,
    clientIdleTimeoutMs = 5_000,
    digest = false,
    ca,
    certificate,
    onRelay,
  } = options
  const device = new Device({ name: 'd0', url: deviceUrl, user: 'u', password: new Secret('p'), ca })
  const client = new DeviceClient(device, { connectTimeoutMs: 5_000, idleTimeoutMs })
  const ends: (RelayEnd | Error)[] = []
  const waiting = new Set<() => void>()
  const onRequest: RequestListener = async (req, res) => {
    const abort = new AbortController()
    res.once('close', () => abort.abort(GONE))
    const wantsTrailers = req.headers.te === 'trailers' && req.httpVersion === '1.1'
    const hash = createHash('sha256')
    let bytes = 0
    try {
      const { signal } = abort
      const opening = { caller: 'relay', startTimeoutMs: 5_000, isRelayed: true }
      using sources = new DisposableStack()
      const reopen: ReopenStep = async (step, ends) =>
        sources.use(await openSource(client, step, { ...opening, signal: ends }))
      const source = await reopen({ device: 'd0', target: req.url ?? '/', isForced: false }, signal)
      const body = new RelayedBody({ plan: PLAN, source, startBytes: 0, headerBytes: 0, signal })
      onRelay?.({ body, sentBytes: () => bytes, reopen })
      await relayDownload(body, {
        res,
        head: { 'Content-Type': 'application/vnd.tcpdump.pcap', ...(wantsTrailers ? ANNOUNCED : {}) },
        signal,
        clientIdleTimeoutMs,
        onPiece: (piece) => {
          bytes += piece.length
          hash.update(piece)
        },
        onRead: () => undefined,
        onWhole: async () => {
          const sha256 = digest ? hash.digest('hex') : undefined
          ends.push({ bytes, sha256 })
          return wantsTrailers ? endTrailers(body.result(), { bytes: BigInt(bytes), sha256 }) : {}
        },
        onCut: () => undefined,
        onHanded: () => undefined,
      })
    } catch (error) {
      ends.push(error as Error)
      if (!res.headersSent) res.writeHead(502).end(String(error))
    }
    for (const wake of waiting) wake()
    waiting.clear()
  }
  const server = await createFront(onRequest, certificate)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ends,
    async ended(count) {
      while (ends.length < count) await new Promise<void>((resolve) => waiting.add(resolve))
    },
    [Symbol.asyncDispose]: () => close(server, client),
  }
}

async function createFront(
  onRequest: RequestListener,
  certificate: TempCertificate | undefined,
): Promise<Server> {
  if (certificate === undefined) return createServer(onRequest)
  const [cert, key] = await Promise.all([readFile(certificate.cert), readFile(certificate.key)])
  const server = createTlsServer({ cert, key }, onRequest)
  followConnections(server)
  return server
}

async function close(server: Server, client: DeviceClient): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
  client.close()
}
