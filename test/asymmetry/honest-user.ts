/**
 * What another user experiences during an attack: small requests at fixed times, each over its own connection, as
 * scripts with curl send them. They do not wait for each other, so that a stalled server delays many of them, not one.
 * But only a limited number wait at once, because more would be an attack too.
 */
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { controlPath, type Stand } from './stand.ts'

export type HonestKind = 'livez' | 'control' | 'login' | 'filtered' | 'events'

/** Results for one kind of request. */
export interface Felt {
  /** Milliseconds, ascending. */
  readonly latenciesMs: readonly number[]
  /** Descriptions of the failures; empty if there were none. */
  readonly failures: readonly string[]
}

export type HonestReport = Readonly<Record<HonestKind, Felt>>

interface KindOfRequest {
  readonly everyMs: number
  /** While this many wait for their answers, no further requests are sent. */
  readonly atOnceMax: number
  readonly target: (stand: Stand, n: number) => string
  readonly authorization: (stand: Stand, n: number) => string | undefined
  /** The answer has no end: only its first bytes are waited for. */
  readonly isEndless?: boolean
  /** All correct answers have the same bytes. */
  readonly isAlwaysTheSame?: boolean
}

const KINDS: Readonly<Record<HonestKind, KindOfRequest>> = {
  livez: { everyMs: 50, atOnceMax: 16, target: () => '/livez', authorization: () => undefined },
  control: { everyMs: 100, atOnceMax: 8, target: controlPath, authorization: ({ honest }) => honest },
  // Not the fleet's list of captures, which waits for all devices, including one that attacks, for control.probeTimeoutMs.
  login: { everyMs: 400, atOnceMax: 4, target: controlPath, authorization: asIfNew },
  filtered: {
    everyMs: 300,
    // With the streams of an attacker who leaves one stream to others, it would otherwise be one too many.
    atOnceMax: 1,
    // A filter that was never compiled before, and that selects the same packets.
    target: ({ devicePath, shortRange }, n) =>
      `${devicePath}/api/v1/pcap/timerange?${shortRange}&Wait=25&FilterBPF=tcp+port+443+and+less+${100_000 + n}`,
    authorization: ({ honest }) => honest,
    isAlwaysTheSame: true,
  },
  events: {
    everyMs: 300,
    atOnceMax: 2,
    target: ({ devicePath }) => `${devicePath}/api/v1/system/events`,
    authorization: ({ honest }) => honest,
    isEndless: true,
  },
}

/** Longer than any useful answer takes. */
const LIMIT_MS = 30_000

export class HonestUser {
  readonly #stand: Stand
  readonly #lanes: Promise<readonly [HonestKind, Felt]>[] = []
  readonly #stopped = new AbortController()

  private constructor(stand: Stand) {
    this.#stand = stand
  }

  static begin(stand: Stand): HonestUser {
    const user = new HonestUser(stand)
    for (const [kind, how] of Object.entries(KINDS) as [HonestKind, KindOfRequest][])
      user.#lanes.push(user.#ask(how).then((felt) => [kind, felt]))
    return user
  }

  /** Sends no new requests, and waits for the pending answers. */
  async end(): Promise<HonestReport> {
    this.#stopped.abort()
    return Object.fromEntries(await Promise.all(this.#lanes)) as unknown as HonestReport
  }

  async #ask(how: KindOfRequest): Promise<Felt> {
    const latenciesMs: number[] = []
    const failures: string[] = []
    const running = new Set<Promise<void>>()
    const one = async (dueMs: number, number: number): Promise<void> => {
      const failure = await failureOf(this.#stand, how, number)
      latenciesMs.push(performance.now() - dueMs)
      if (failure !== undefined) failures.push(failure)
    }
    const startMs = performance.now()
    const { signal } = this.#stopped
    for (let n = 0; !signal.aborted; n += 1) {
      const dueMs = startMs + n * how.everyMs
      await delay(Math.max(0, dueMs - performance.now()), undefined, { signal }).catch(() => undefined)
      if (signal.aborted) break
      if (running.size >= how.atOnceMax) {
        await Promise.race(running)
        n = Math.floor((performance.now() - startMs) / how.everyMs)
        continue
      }
      asked += 1
      const answered = one(dueMs, asked).finally(() => running.delete(answered))
      running.add(answered)
    }
    await Promise.all(running)
    return { latenciesMs: latenciesMs.sort((a, b) => a - b), failures }
  }
}

/** Unique in this process: the results of repeated requests are cached for other users. */
let asked = 0
/** The right bodies, by stand and kind. */
const rightBodies = new Map<string, Buffer>()

async function failureOf(stand: Stand, how: KindOfRequest, n: number): Promise<string | undefined> {
  const target = how.target(stand, n)
  const what = target.split('?', 1)[0]
  try {
    const response = await ask(stand, target, how.authorization(stand, n))
    const body = await bodyOf(response, how.isEndless ?? false)
    if (response.statusCode !== 200) return `${what}: ${response.statusCode} ${body.toString('utf8', 0, 300)}`
    if (body.length === 0) return `${what}: an answer without a byte`
    if (!how.isAlwaysTheSame) return undefined
    const key = `${stand.attackedPid} ${what}`
    const right = rightBodies.get(key) ?? body
    rightBodies.set(key, right)
    return right.equals(body) ? undefined : `${what}: ${body.length} bytes, not the same as before`
  } catch (error) {
    return `${what}: ${error instanceof Error ? error.message : String(error)}`
  }
}

function ask(stand: Stand, target: string, authorization: string | undefined): Promise<IncomingMessage> {
  const url = stand.url + target
  const headers = authorization === undefined ? {} : { authorization }
  const options = { agent: false, headers, signal: AbortSignal.timeout(LIMIT_MS), rejectUnauthorized: false }
  const sent = stand.url.startsWith('https:') ? requestHttps(url, options) : requestHttp(url, options)
  sent.end()
  return new Promise((resolve, reject) => {
    sent.once('response', resolve)
    // The listener stays, so that a connection that breaks after the answer does not end the process.
    sent.on('error', reject)
  })
}

async function bodyOf(response: IncomingMessage, isEndless: boolean): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of response) {
    chunks.push(chunk as Buffer)
    // Leaving the loop destroys the connection.
    if (isEndless) break
  }
  return Buffer.concat(chunks)
}

/**
 * The honest user's credentials in a spelling that was never used, so that they must be verified like those of a new
 * user.
 */
function asIfNew({ honest }: Stand, n: number): string {
  const [scheme = '', secret = ''] = honest.split(' ')
  const letters = [...scheme].map((letter, i) => ((n >> i) & 1 ? letter.toUpperCase() : letter.toLowerCase()))
  return `${letters.join('')}${' '.repeat(1 + ((n >> 5) & 1023))}${secret}`
}

/** The smallest value that at least `share` of all values do not exceed; 0 for an empty list. */
export function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? 0
}
