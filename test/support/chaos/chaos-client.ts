/** One download of a chaos run and its verdict: what the client saw, and whether that was honest. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { simulatedDigest, simulatedRange } from '../devices/simulated-capture.ts'
import { GATEWAY_AUTHORIZATION } from '../processes/gateway-process.ts'

export interface ChaosRequest {
  /** Base URL of a gateway. */
  readonly url: string
  /** Numbers of the devices, ascending; one = a download of that device, several = a merge. */
  readonly devices: readonly number[]
  readonly packets: number
  readonly waitS: number
  /** Leaves after this many ms; undefined = stays. */
  readonly leaveAfterMs: number | undefined
  /** Stops reading for this long after the head. */
  readonly sleepMs: number
}

/**
 * complete: ended cleanly and every byte is right. FALSE: ended cleanly but is not the requested file. cut: broke off
 * after a 200. refused: another status, in `code`. unreachable: no answer. left: this client went away. hung: none of
 * these in time.
 */
export type ChaosEnd = 'complete' | 'FALSE' | 'cut' | 'refused' | 'unreachable' | 'left' | 'hung'

export interface ChaosResult {
  readonly end: ChaosEnd
  readonly code: string
  readonly startedMs: number
  readonly headMs: number | undefined
  readonly endedMs: number
}

/** Longer than the longest wait plus the longest stream with all its possible faults. */
const HUNG_MS = 150_000

export async function chaosDownload(asked: ChaosRequest): Promise<ChaosResult> {
  const startedMs = Date.now()
  let headMs: number | undefined
  const give = (end: ChaosEnd, code = ''): ChaosResult => ({
    end,
    code,
    startedMs,
    headMs,
    endedMs: Date.now(),
  })
  const sent = request(addressOf(asked), { headers: { authorization: GATEWAY_AUTHORIZATION }, agent: false })
  sent.on('error', () => undefined)
  sent.end()
  let why: 'left' | 'hung' | undefined
  const go = (reason: 'left' | 'hung') => {
    why = reason
    sent.destroy()
  }
  const timers = [setTimeout(() => go('hung'), HUNG_MS)]
  if (asked.leaveAfterMs !== undefined) timers.push(setTimeout(() => go('left'), asked.leaveAfterMs))
  try {
    const [res] = (await once(sent, 'response')) as [IncomingMessage]
    headMs = Date.now()
    if (res.statusCode !== 200) return give('refused', await codeOf(res))
    await delay(asked.sleepMs)
    const digest = await digestOf(res)
    // If the reader leaves after the whole answer has arrived unread, Node ends it cleanly, and empty.
    if (why !== undefined) return give(why)
    return give(digest === simulatedDigest(asked.devices, asked.packets) ? 'complete' : 'FALSE')
  } catch {
    return give(why ?? (headMs === undefined ? 'unreachable' : 'cut'))
  } finally {
    for (const timer of timers) clearTimeout(timer)
  }
}

function addressOf({ url, devices, packets, waitS }: ChaosRequest): string {
  const query = `${simulatedRange(packets)}&Wait=${waitS}`
  const [only] = devices
  if (devices.length === 1) return `${url}/devices/d${only}/api/v1/pcap/timerange?${query}`
  return `${url}/api/v1/pcap/timerange?Device=${devices.map((device) => `d${device}`).join()}&${query}`
}

async function digestOf(res: IncomingMessage): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of res) hash.update(chunk)
  return hash.digest('hex')
}

async function codeOf(res: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of res) chunks.push(chunk)
  const body = JSON.parse(Buffer.concat(chunks).toString()) as { code?: string }
  return body.code ?? String(res.statusCode)
}
