import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

/** The scheduler's Lua scripts as typed calls. Each Lua file tells what it does and returns. */

const SCRIPT_NAMES = ['enqueue', 'release', 'heartbeat', 'reassert', 'leave', 'queue-snapshot'] as const
type ScriptName = (typeof SCRIPT_NAMES)[number]
type ScriptCall = (key: string, ...args: readonly string[]) => Promise<unknown>

export interface ScriptContext {
  readonly redis: Redis
  /** Keys are `{prefix}:...`. */
  readonly keyPrefix: string
  readonly replica: string
  readonly streamsPerDevice: number
}

/** One request as its owner knows it: id, devices, class, user, and whether its grant has arrived. */
export type OwnedRequest = readonly [string, string, string, string, 'held' | 'waiting']

/** One row of the queue over all replicas. */
export type QueueRow = readonly [
  id: string,
  state: 'w' | 'g' | 's',
  devices: string,
  requestClass: string,
  user: string,
  owner: string,
  enqueuedMs: string,
  grantedMs: string,
  position: number,
]

/** Longest list that /v1/queue gives. */
const SNAPSHOT_ROWS = 1_000

export class LeaseScripts {
  readonly #context: ScriptContext

  constructor(context: ScriptContext) {
    this.#context = context
    const rules = readScript('lease-rules')
    for (const name of SCRIPT_NAMES) {
      context.redis.defineCommand(commandOf(name), { numberOfKeys: 1, lua: `${rules}\n${readScript(name)}` })
    }
  }

  async enqueue(id: string, devices: string, requestClass: string, user: string) {
    const reply = await this.#call('enqueue', id, devices, requestClass, user)
    const [state, position] = reply as ['g' | 'w' | 'lapsed', number]
    return { state, position }
  }

  async release(id: string) {
    const [state, position] = (await this.#call('release', id)) as ['w' | 'g' | 's' | '', number]
    return { state, position }
  }

  async heartbeat(ttlMs: number, suspectMs: number, received: readonly string[]) {
    const reply = await this.#call('heartbeat', String(ttlMs), String(suspectMs), ...received)
    const [state, granted] = reply as ['ok' | 'lapsed', string[]]
    return { state, granted }
  }

  async reassert(owned: readonly OwnedRequest[]): Promise<readonly string[]> {
    return (await this.#call('reassert', JSON.stringify(owned))) as string[]
  }

  async leave(): Promise<void> {
    await this.#call('leave')
  }

  async queueSnapshot(): Promise<readonly QueueRow[]> {
    return (await this.#call('queue-snapshot', String(SNAPSHOT_ROWS))) as QueueRow[]
  }

  #call(name: ScriptName, ...args: readonly string[]): Promise<unknown> {
    const { redis, keyPrefix, replica, streamsPerDevice } = this.#context
    const command = (redis as unknown as Record<string, ScriptCall>)[commandOf(name)]
    if (command === undefined) throw new Error(`script ${name} is not defined`)
    return command.call(redis, `{${keyPrefix}}:g`, replica, String(streamsPerDevice), ...args)
  }
}

/** A name that no Redis command has. */
function commandOf(name: ScriptName): string {
  return `capfleet-${name}`
}

function readScript(name: string): string {
  return readFileSync(new URL(`${name}.lua`, import.meta.url), 'utf8')
}
