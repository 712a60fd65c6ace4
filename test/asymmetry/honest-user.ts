/**
 * What somebody else feels meanwhile: small requests at fixed times, each over a connection of its own, as
 * scripts with curl make them. They do not wait for each other, so that a server that stands still keeps
 * many waiting, not one; but only so many wait at once, for more would be an attack too.
 */
import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import { controlPath, type Stand } from './stand.ts'

export type HonestKind = 'livez' | 'control' | 'login' | 'filtered' | 'events'

/** Of one kind of request. */
export interface Felt {
  /** Milliseconds, ascending. */
  readonly latenciesMs: readonly number[]
  /** What went wrong, in words; empty when nothing did. */
  readonly failures: readonly string[]
}

export type HonestReport = Readonly<Record<HonestKind, Felt>>

interface KindOfRequest {
  readonly everyMs: number
  /** While so many wait for their answers, no further ones are asked. */
  readonly atOnceMax: number
  readonly target: (stand: Stand, n: number) => string
  readonly authorization: (stand: Stand, n: number) => string | undefined
  /** The answer has no end: its first bytes are all that is waited for. */
  readonly isEndless?: boolean
  /** All right answers are the same bytes. */
  readonly isAlwaysTheSame?: boolean
}

const KINDS: Readonly<Record<HonestKind, KindOfRequest>> = {
  livez: { everyMs: 50, atOnceMax: 16, target: () => '/livez', authorization: () => undefined },
  control: { everyMs: 100, atOnceMax: 8, target: controlPath, authorization: ({ honest }) => honest },
  // Not the fleet's list of captures, which waits for all devices, including one that attacks, for control.probeTimeoutMs.
  login: { everyMs: 400, atOnceMax: 4, target: controlPath, authorization: asIfNew },
  filtered: {
    everyMs: 300,
    // With those of an attacker who leaves one stream to others it is one too many otherwise.
    atOnceMax: 1,
    // A filter that nobody has compiled yet, and that lets the same packets through.
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

/** Longer than anything that is still an answer. */
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

  /** Asks nothing new, and waits for the answers that are due. */
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

/** Over the life of the process: what is asked once is remembered by others. */
let asked = 0
/** By stand and kind. */
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
    // Stays, so that a connection that breaks behind the answer ends nothing else.
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

/** The honest user's credentials, written as nobody has yet: they must be verified like those of a newcomer. */
function asIfNew({ honest }: Stand, n: number): string {
  const [scheme = '', secret = ''] = honest.split(' ')
  const letters = [...scheme].map((letter, i) => ((n >> i) & 1 ? letter.toUpperCase() : letter.toLowerCase()))
  return `${letters.join('')}${' '.repeat(1 + ((n >> 5) & 1023))}${secret}`
}

/** The value that `share` of all are not above; 0 of none. */
export function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * share))] ?? 0
}
