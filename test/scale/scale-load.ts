/** The requests that people and programs repeatedly send for a large fleet, to three gateways. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { GATEWAY_AUTHORIZATION } from '../support/processes/gateway-process.ts'
import { judgedMerge, type MergeOrder, type MergeResult } from './judged-merge.ts'
import { range } from './scale-world.ts'

export interface CallFigure {
  readonly kind: string
  readonly atMs: number
  readonly tookMs: number
  readonly bytes: number
}

export interface MergeFigure extends MergeResult {
  readonly atMs: number
  readonly order: MergeOrder
}

/** Whether devices were away at any time since then. */
export type AwaySince = (devices: readonly number[], sinceMs: number) => boolean

export interface LoadOptions {
  readonly gateways: readonly string[]
  /** The numbers of the configured devices. */
  readonly devices: () => readonly number[]
  /** Captures of each device. */
  readonly captures: number
  readonly awaySince: AwaySince
  readonly signal: AbortSignal
}

interface CallKind {
  readonly kind: string
  readonly everyMs: number
  readonly path: (load: ScaleLoad) => string
  /** What is wrong with the answer, or undefined if nothing is. */
  readonly fault?: (body: string, load: ScaleLoad, path: string) => string | undefined
}

const GROUP = 64
/** Merges of one group that many clients want, which has four streams on each device. */
const HOT_CLIENTS = 7
const OTHER_CLIENTS = 3
const PAUSE_MS = 250
const FAULT_LENGTH = 200

/** Groups 0 to 8 cover the whole fleet; from 9 on they are in the part whose devices are never away. */
function groupOf(number: number, devices: number): readonly number[] {
  const stride = Math.floor(devices / 70)
  if (number < 9) return range(0, GROUP).map((member) => number + member * stride)
  const from = Math.floor(devices * 0.36) + (number - 9) * GROUP
  return range(from, from + GROUP)
}

const GROUPS = 14
const HOT_GROUP = 3

export class ScaleLoad {
  readonly calls: CallFigure[] = []
  readonly merges: MergeFigure[] = []
  /** Failures that should not have happened. */
  readonly faults: string[] = []
  readonly options: LoadOptions
  readonly #agent = new Agent({ keepAlive: true })
  readonly #fleetSize: number
  #running: readonly Promise<void>[] = []

  constructor(options: LoadOptions) {
    this.options = options
    this.#fleetSize = options.devices().length
  }

  begin(): void {
    const { gateways } = this.options
    const callers = gateways.flatMap((url) => CALLS.map((kind) => this.#repeat(kind, url)))
    const mergers = range(0, HOT_CLIENTS + OTHER_CLIENTS).map((client) => this.#merge(client))
    this.#running = [...callers, ...mergers]
  }

  /** Resolves when all running requests have ended. */
  async end(): Promise<void> {
    await Promise.all(this.#running)
    this.#agent.destroy()
  }

  /** A device that is configured. */
  anyDevice(): number {
    const devices = this.options.devices()
    return devices[Math.floor(Math.random() * devices.length)] ?? 0
  }

  anyGroup(): readonly number[] {
    return groupOf(Math.floor(Math.random() * GROUPS), this.#fleetSize)
  }

  /** One measured call; resolves with its body. A failure counts as a fault. */
  async call(kind: string, url: string, path: string): Promise<string> {
    const atMs = Date.now()
    const startMs = performance.now()
    const headers = { authorization: GATEWAY_AUTHORIZATION }
    const asked = request(url + path, { headers, agent: this.#agent })
    asked.end()
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    const pieces: Buffer[] = []
    for await (const piece of answer) pieces.push(piece)
    const body = Buffer.concat(pieces)
    if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${body.toString().slice(0, 200)}`)
    this.calls.push({ kind, atMs, tookMs: performance.now() - startMs, bytes: body.length })
    return body.toString()
  }

  async #repeat({ kind, everyMs, path, fault }: CallKind, url: string): Promise<void> {
    const { signal, awaySince } = this.options
    // Calls of one kind must not reach all gateways at the same time.
    await pause(Math.random() * everyMs, signal)
    while (!signal.aborted) {
      const dueMs = performance.now() + everyMs
      const atMs = Date.now()
      const target = path(this)
      try {
        const body = await this.call(kind, url, target)
        const wrong = fault?.(body, this, target)
        if (wrong !== undefined) this.faults.push(`${kind}: ${wrong}`)
      } catch (error) {
        const asked = /^\/(?:v1\/)?devices\/d(\d+)/.exec(target)?.[1]
        const isExcused = asked !== undefined && awaySince([Number(asked)], atMs)
        if (!isExcused) this.faults.push(`${kind}: ${String(error).slice(0, FAULT_LENGTH)}`)
      }
      await pause(dueMs - performance.now(), signal)
    }
  }

  async #merge(client: number): Promise<void> {
    const { signal, gateways, awaySince } = this.options
    for (let round = client; !signal.aborted; round += 1) {
      const devices = client < HOT_CLIENTS ? groupOf(HOT_GROUP, this.#fleetSize) : this.anyGroup()
      const url = gateways[round % gateways.length] ?? ''
      const atMs = Date.now()
      const order: MergeOrder = { url, devices, onError: round % 2 === 0 ? 'fail' : 'partial' }
      try {
        const result = await judgedMerge(order)
        this.merges.push({ ...result, atMs, order })
        const isExcused = result.end !== 'WRONG' && awaySince(devices, atMs)
        if (result.end !== 'complete' && !isExcused)
          this.faults.push(`merge from d${devices[0]}: ${result.end} ${result.what}`.slice(0, FAULT_LENGTH))
      } catch (error) {
        this.faults.push(`merge of ${devices.length} from d${devices[0]}: ${String(error)}`)
      }
      await pause(PAUSE_MS, signal)
    }
  }
}

/** More than three captures for each device of a group. */
const LIST_LIMIT = 200

interface ListBody {
  readonly List: readonly { readonly StreamName: string }[]
  readonly Unreachable?: readonly { readonly Device: string }[]
}

/** Whether the answer has captures of all devices of a group, except those that it names as missing. */
function faultOfGroupList(body: string, load: ScaleLoad, path: string): string | undefined {
  const devices = [...path.matchAll(/d(\d+)/g)].map(([, device]) => Number(device))
  const { List, Unreachable = [] } = JSON.parse(body) as ListBody
  const expected = Math.min(LIST_LIMIT, (devices.length - Unreachable.length) * load.options.captures)
  if (List.length !== expected) return `${List.length} captures instead of ${expected}`
  return faultOfUnreachable(Unreachable, load)
}

function faultOfUnreachable(
  unreachable: readonly { readonly Device: string }[],
  load: ScaleLoad,
): string | undefined {
  const wrong = unreachable.find(
    ({ Device }) => !load.options.awaySince([Number(Device.slice(1))], Date.now() - 5_000),
  )
  return wrong === undefined ? undefined : `${JSON.stringify(wrong)} was there all the time`
}

function faultOfFleetList(body: string, load: ScaleLoad): string | undefined {
  const { List, Unreachable = [] } = JSON.parse(body) as ListBody
  if (List.length !== LIST_LIMIT) return `${List.length} captures instead of ${LIST_LIMIT}`
  return faultOfUnreachable(Unreachable, load)
}

const CALLS: readonly CallKind[] = [
  {
    kind: '/v1/devices',
    everyMs: 2_000,
    path: () => '/v1/devices',
    fault: (body, load) => {
      const { length } = (JSON.parse(body) as { devices: unknown[] }).devices
      const expected = load.options.devices().length
      // While the roster changes, a gateway may be ahead of this process's view, or behind it.
      return Math.abs(length - expected) > expected / 10
        ? `${length} devices instead of ${expected}`
        : undefined
    },
  },
  { kind: '/v1/queue', everyMs: 500, path: () => '/v1/queue' },
  { kind: '/v1/devices/{d}', everyMs: 500, path: (load) => `/v1/devices/d${load.anyDevice()}` },
  {
    kind: '/devices/{d}/stream/list',
    everyMs: 250,
    path: (load) => `/devices/d${load.anyDevice()}/stream/list`,
  },
  {
    kind: '/stream/list of 64',
    everyMs: 2_000,
    path: (load) =>
      `/stream/list?Limit=${LIST_LIMIT}&Device=${load
        .anyGroup()
        .map((device) => `d${device}`)
        .join()}`,
    fault: faultOfGroupList,
  },
  {
    kind: '/stream/list of all',
    everyMs: 15_000,
    path: () => `/stream/list?Limit=${LIST_LIMIT}`,
    fault: faultOfFleetList,
  },
  { kind: '/metrics', everyMs: 15_000, path: () => '/metrics' },
]

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, ms), undefined, { signal }).catch(() => undefined)
}
