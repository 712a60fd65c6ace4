/** A client that aborts at some point of a request. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { GATEWAY_AUTHORIZATION } from '../processes/gateway-process.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { connectTo } from './raw-client.ts'

/**
 * connected: after connecting. half-head: in the middle of its own request head. asked: some ms after the request,
 * possibly before the head, in the queue, or in the body. body: after some bytes. head: an aborted HEAD request.
 * nothing: reads to the end.
 */
export const ABORT_PHASES = [
  'connected',
  'half-head',
  'asked',
  'asked',
  'body',
  'body',
  'head',
  'nothing',
] as const
export type AbortPhase = (typeof ABORT_PHASES)[number]

export async function abortedRequest(
  url: string,
  path: string,
  options: { readonly phase: AbortPhase; readonly random: SeededRandom },
): Promise<void> {
  const { phase, random } = options
  if (phase === 'connected' || phase === 'half-head') {
    const socket = await connectTo(url)
    if (phase === 'half-head') socket.write(`GET ${path.slice(0, random.integer(1, path.length))}`)
    await delay(random.integer(0, 5))
    socket.resetAndDestroy()
    return
  }
  const headers = { authorization: GATEWAY_AUTHORIZATION }
  const sent = request(url + path, { method: phase === 'head' ? 'HEAD' : 'GET', headers, agent: false })
  sent.on('error', () => undefined)
  sent.end()
  if (phase === 'asked' || phase === 'head') {
    await delay(random.integer(0, 60))
    sent.destroy()
    return
  }
  await readSome(sent, phase === 'body' ? random.integer(0, 100_000) : Infinity)
}

async function readSome(sent: ReturnType<typeof request>, mostBytes: number): Promise<void> {
  try {
    const [res] = (await once(sent, 'response')) as [IncomingMessage]
    let bytes = 0
    for await (const chunk of res) {
      bytes += (chunk as Buffer).length
      if (bytes > mostBytes) break
    }
  } catch {
    // A refusal or a cut is just another end here: only what is left behind matters.
  } finally {
    sent.destroy()
  }
}
