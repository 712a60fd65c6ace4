/** The phases of a run in their order, and the faults in each. */
import { setTimeout as delay } from 'node:timers/promises'
import { judgedMerge } from './judged-merge.ts'
import { ScaleLoad } from './scale-load.ts'
import { ScaleMeter } from './scale-meter.ts'
import { range, type ScaleWorld } from './scale-world.ts'
import { watchHealth } from './watch-health.ts'

export interface Note {
  readonly what: string
  /** One for each device and gateway, or only one. */
  readonly tookMs: readonly number[]
}

/** A probe begins at most 5.5 s after the previous one, and waits 3 s for its answer. */
const HEALTH_LATE_MS = 12_000
const ROSTER_LATE_MS = 10_000
/** How long after its return a device must be usable: gateways have seen it, and their breakers are closed. */
const BACK_MS = 20_000
const FORGOTTEN_MS = 400

export class ScaleRun {
  readonly faults: string[] = []
  readonly notes: Note[] = []
  readonly meter: ScaleMeter
  readonly load: ScaleLoad
  readonly #world: ScaleWorld
  readonly #deviceCount: number
  readonly #seconds: number
  readonly #stopped = new AbortController()
  #configured: readonly number[]
  #away: ReadonlySet<number> = new Set()
  #backAtMs = 0

  constructor(
    world: ScaleWorld,
    {
      devices,
      captures,
      seconds,
    }: { readonly devices: number; readonly captures: number; readonly seconds: number },
  ) {
    this.#world = world
    this.#deviceCount = devices
    this.#seconds = seconds
    this.#configured = range(0, devices)
    this.meter = new ScaleMeter(world)
    this.load = new ScaleLoad({
      gateways: world.gateways.map(({ url }) => url),
      devices: () => this.#configured,
      captures,
      awaySince: (asked, sinceMs) => this.#wasAway(asked, sinceMs),
      signal: this.#stopped.signal,
    })
  }

  note(what: string, ...tookMs: readonly number[]): void {
    this.notes.push({ what, tookMs })
    process.stderr.write(`${new Date().toISOString()} ${what}\n`)
  }

  async play(): Promise<void> {
    await using meter = this.meter
    const startMs = performance.now()
    await this.#seen(range(0, this.#deviceCount), true, Date.now(), 'each device probed')
    this.note('all devices probed', performance.now() - startMs)
    await meter.phase('probes alone', () => this.#rest(0.1))
    this.load.begin()
    await meter.phase('load', () => this.#rest(0.3))
    await meter.phase('roster changed', () => this.#changeRoster())
    await meter.phase('a third gone', () => this.#loseThird())
    await meter.phase('back', () => this.#bringBack())
    this.#stopped.abort()
    await this.load.end()
    this.faults.push(...this.load.faults)
    await this.#checkDevices()
  }

  async #rest(part: number): Promise<void> {
    await delay(this.#seconds * part * 1_000)
  }

  /** A twentieth of the devices leaves, and as many are added; then the change is reverted. */
  async #changeRoster(): Promise<void> {
    const all = range(0, this.#deviceCount)
    const changed = Math.floor(this.#deviceCount / 20)
    this.#configured = all.slice(0, -changed)
    const added = range(this.#deviceCount, this.#deviceCount + changed)
    await this.#configure('roster changed', [...this.#configured, ...added], added)
    const [gateway] = this.#world.gateways
    const result = await judgedMerge({ url: gateway?.url ?? '', devices: added, onError: 'fail' })
    if (result.end !== 'complete') this.faults.push(`merge of added devices: ${result.end} ${result.what}`)
    await this.#rest(0.05)
    await this.#configure('roster changed back', all, all.slice(-changed))
    this.#configured = all
    await this.#rest(0.05)
  }

  async #configure(what: string, devices: readonly number[], added: readonly number[]): Promise<void> {
    const startMs = performance.now()
    await this.#world.configure(devices)
    await this.#world.untilKnown(added.at(-1) ?? 0)
    const tookMs = performance.now() - startMs
    this.note(`${what}, known to all gateways`, tookMs)
    if (tookMs > ROSTER_LATE_MS) this.faults.push(`${what}: known after ${tookMs} ms`)
  }

  async #loseThird(): Promise<void> {
    const refusing = range(0, Math.floor(this.#deviceCount / 6))
    const silent = range(refusing.length, Math.floor(this.#deviceCount / 3))
    this.#away = new Set([...refusing, ...silent])
    const atMs = Date.now()
    await Promise.all([this.#world.setMood(refusing, 'refusing'), this.#world.setMood(silent, 'silent')])
    await this.#seen(refusing, false, atMs, 'refusing device seen as down')
    await this.#seen(silent, false, atMs, 'silent device seen as down')
    await this.#rest(0.2)
  }

  async #bringBack(): Promise<void> {
    const atMs = Date.now()
    const away = [...this.#away]
    await this.#world.setMood(away, 'well')
    await this.#seen(away, true, atMs, 'device seen as back')
    this.#backAtMs = Date.now()
    await this.#rest(0.25)
  }

  async #seen(devices: readonly number[], isUp: boolean, sinceMs: number, what: string): Promise<void> {
    const { tookMs, lateDevices } = await watchHealth(this.load, { devices, isUp, sinceMs })
    this.note(what, ...tookMs)
    if (lateDevices.length > 0) this.faults.push(`${what}: never for ${lateDevices.join(', ')}`)
    const late = tookMs.filter((ms) => ms > HEALTH_LATE_MS).length
    if (late > 0) this.faults.push(`${what}: ${late} times later than ${HEALTH_LATE_MS} ms`)
  }

  #wasAway(devices: readonly number[], sinceMs: number): boolean {
    const isOver = this.#backAtMs > 0 && sinceMs > this.#backAtMs + BACK_MS
    return !isOver && devices.some((device) => this.#away.has(device))
  }

  async #checkDevices(): Promise<void> {
    // A reader that has just left still counts at the device.
    await delay(FORGOTTEN_MS)
    const states = await Promise.all(this.#world.hosts.map((host) => host.state()))
    const fifths = states.reduce((sum, state) => sum + state.fifths, 0)
    const served = states.reduce((sum, state) => sum + state.served, 0)
    this.note('streams served to their end', served)
    if (fifths > 0) this.faults.push(`${fifths} times a fifth reader came to a device`)
  }
}
