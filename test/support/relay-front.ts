/** An HTTP server that relays every request to one device, and tells how each relay ended. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { Device } from '../../src/device/device.ts'
import { DeviceClient } from '../../src/device/device-client.ts'
import { BodyTail } from '../../src/download/body-tail.ts'
import type { Checkpoint } from '../../src/download/receipt.ts'
import { type ParkableRelay, type RelayEnd, relayDownload } from '../../src/download/relay.ts'
import { openSource, type Source } from '../../src/download/source.ts'
import type { TempCertificate } from './temp-certificate.ts'

export interface RelayFrontOptions {
  readonly idleTimeoutMs?: number
  readonly clientIdleTimeoutMs?: number
  readonly digest?: boolean
  /** Certificates (PEM) that vouch for the device. */
  readonly ca?: string
  /** Its own, for TLS to the clients. */
  readonly certificate?: TempCertificate
  /** Hears of every relay that begins. */
  readonly onRelay?: (relay: FrontRelay) => void
}

/** A relay that runs. */
export interface FrontRelay {
  readonly relay: ParkableRelay
  sentSoFar(): Checkpoint
  /** Asks the device again. */
  open(): Promise<Source>
}

export interface RelayFront extends AsyncDisposable {
  readonly url: string
  /** How the relays ended, in order: their end, or what they were rejected with. */
  readonly ends: readonly (RelayEnd | Error)[]
  /** Resolves when so many have ended. */
  ended(count: number): Promise<void>
}

const GONE = new Error('the client has gone')

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
  const device = new Device({ name: 'd0', url: deviceUrl, user: 'u', password: 'p', ca })
  const client = new DeviceClient(device, { connectTimeoutMs: 5_000, idleTimeoutMs })
  const ends: (RelayEnd | Error)[] = []
  const waiting = new Set<() => void>()
  const onRequest: RequestListener = async (req, res) => {
    const abort = new AbortController()
    res.once('close', () => abort.abort(GONE))
    const wantsTrailers = req.headers.te === 'trailers' && req.httpVersion === '1.1'
    try {
      const step = { device: 'd0', target: req.url ?? '/' }
      const opening = {
        caller: 'relay',
        signal: abort.signal,
        startTimeoutMs: 5_000,
        isRelayed: true,
      }
      using source = await openSource(client, step, opening)
      const head = { 'Content-Type': 'application/vnd.tcpdump.pcap' }
      const exchange = { req, res, head, requestId: 'r', signal: abort.signal, digest, wantsTrailers }
      const tail = new BodyTail()
      let bytes = 0
      const onBytes = (count: number, piece: Uint8Array) => {
        bytes += count
        tail.add(piece)
      }
      const sentSoFar = () => ({ bytes: String(bytes), overBytes: tail.length, crc32: tail.crc32() })
      using again = new DisposableStack()
      const open = async () => again.use(await openSource(client, step, opening))
      const watch = (relay: ParkableRelay) => {
        onRelay?.({ relay, sentSoFar, open })
        return new DisposableStack()
      }
      ends.push(await relayDownload(source, { ...exchange, clientIdleTimeoutMs, onBytes, watch }))
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
  return createTlsServer({ cert, key }, onRequest)
}

async function close(server: Server, client: DeviceClient): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
  client.close()
}
