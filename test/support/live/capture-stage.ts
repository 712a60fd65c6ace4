/**
 * A device's capture over a real store in a temporary folder, with a scripted engine and a clock that the test sets.
 * Ticks happen when the test requests them.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CaptureControl } from '../../../appliance/recorder/capture/capture-control.ts'
import { CaptureKeeper } from '../../../appliance/recorder/capture/capture-keeper.ts'
import { PortDriver } from '../../../appliance/recorder/capture/port-driver.ts'
import { RecorderClock } from '../../../appliance/recorder/clock/recorder-clock.ts'
import { ScheduleClock } from '../../../appliance/recorder/clock/schedule-clock.ts'
import { StoreWriter } from '../../../appliance/recorder/writer/store-writer.ts'
import { type CaptureConfig, captureConfigSchema } from '../../../appliance/settings/capture-config.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import type { StoredCapture } from '../../../appliance/store/stored-capture.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { storedCaptureOf } from '../disks/store-captures.ts'
import { tempFolder } from '../temp-folder.ts'
import { ScriptedEngine } from './scripted-engine.ts'

const PORTS = [0, 3]

export interface CaptureStage extends AsyncDisposable {
  readonly engine: ScriptedEngine
  readonly writer: StoreWriter
  readonly control: CaptureControl
  /** "kind name" of each event so far. */
  readonly events: string[]
  /** If set, there is no room for packets, with this error. */
  roomProblem: Error | undefined
  /** How many segments were finished. */
  readonly finished: () => number
  /** Advances both clocks, and runs what is then due. */
  pass(ms: number): Promise<void>
  /** Sets only the wall clock, and runs what is then due. */
  setWall(time: string): Promise<void>
  /** Sets the wall clock while no recorder runs. */
  setAway(time: string): void
  /** Ends the recorder, cleanly or as kill -9 does. The next one has the same engine and store. */
  restart(how: 'stopped' | 'killed', whileAway?: () => void): Promise<void>
  /** Names of captures, oldest first, and each one's record. */
  captures(): Promise<string[]>
  record(name: string): Promise<StoredCapture>
}

export interface CaptureStageOptions {
  /** RFC 3339: the clock at the start. */
  readonly at: string
  /** Settings as in the YAML file. */
  readonly config?: Readonly<Record<string, unknown>>
  readonly timeZone?: string
  /** Whether schedules and rolls follow the recorder's guarded clock; default: the wall clock at once. */
  readonly isClockGuarded?: boolean
  readonly refusal?: Error
}

export async function captureStage(options: CaptureStageOptions): Promise<CaptureStage> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const root = join(folder.path, 'store')
  const stage = new Stage(root, options)
  parts.defer(() => stage.end())
  await stage.begin()
  const owner = parts.move()
  return Object.assign(stage, { [Symbol.asyncDispose]: () => owner.disposeAsync() })
}

class Stage {
  readonly engine = new ScriptedEngine(PORTS)
  readonly events: string[] = []
  roomProblem: Error | undefined
  readonly #root: string
  readonly #config: CaptureConfig
  readonly #timeZone: string
  readonly #isClockGuarded: boolean
  #wallMs: number
  #monotonicMs = 1_000_000
  #finished = 0
  #parts:
    | {
        writer: StoreWriter
        control: CaptureControl
        keeper: CaptureKeeper
        clock: RecorderClock | undefined
      }
    | undefined

  constructor(
    root: string,
    { at, config = {}, timeZone = 'UTC', isClockGuarded = false, refusal }: CaptureStageOptions,
  ) {
    this.#root = root
    this.#config = captureConfigSchema.parse(config)
    this.#timeZone = timeZone
    this.#isClockGuarded = isClockGuarded
    this.#wallMs = Date.parse(at)
    this.engine.refusal = refusal
  }

  get writer(): StoreWriter {
    return this.#open.writer
  }

  get control(): CaptureControl {
    return this.#open.control
  }

  finished = (): number => this.#finished

  async pass(ms: number): Promise<void> {
    this.#wallMs += ms
    this.#monotonicMs += ms
    await this.#open.keeper.tick()
  }

  async setWall(time: string): Promise<void> {
    this.#wallMs = Date.parse(time)
    await this.#open.keeper.tick()
  }

  setAway(time: string): void {
    this.#wallMs = Date.parse(time)
  }

  async restart(how: 'stopped' | 'killed', whileAway = (): void => undefined): Promise<void> {
    if (how === 'stopped') await this.control[Symbol.asyncDispose]()
    await this.#open.clock?.[Symbol.asyncDispose]()
    await this.writer[Symbol.asyncDispose]()
    this.#parts = undefined
    whileAway()
    await this.begin()
  }

  async captures(): Promise<string[]> {
    return (await readdir(join(this.#root, 'captures'))).sort()
  }

  async record(name: string): Promise<StoredCapture> {
    return await storedCaptureOf(this.#root, name)
  }

  async begin(): Promise<void> {
    const nowNs = (): bigint => BigInt(this.#wallMs) * 1_000_000n
    const log = createLog('test', 'silent')
    const events = {
      append: (kind: string, fields: Readonly<Record<string, unknown>>) =>
        void this.events.push(`${kind} ${fields.name}`),
    }
    const writer = await StoreWriter.open(this.#root)
    const { schedule: rows, roll, segmentBytes, syncIntervalMs, queueBytes } = this.#config
    const clock = await this.#openClock(nowNs)
    const scheduleNs = clock === undefined ? nowNs : () => clock.scheduleNs()
    const schedule = await ScheduleClock.open({ rows, nowNs: scheduleNs, store: writer })
    const ports = PORTS.map((port) => ({
      port,
      interfaceName: `eth${port}`,
      threads: 1,
      ringBytes: 2 ** 22,
      snaplen: 262_144,
      isPromiscuous: false,
    }))
    const open = async (): Promise<ScriptedEngine> => this.engine
    const driver = new PortDriver({ ports, segmentBytes, syncIntervalMs, queueBytes, open })
    const shared = { nowNs, schedule, timeZone: this.#timeZone, events, log, clockHold: () => '' as const }
    const control = await CaptureControl.open(writer, {
      ...shared,
      driver,
      bootId: 'this boot',
      onSegmentFinished: () => {
        this.#finished += 1
      },
      checkRoom: () => {
        if (this.roomProblem !== undefined) throw this.roomProblem
      },
    })
    const keeper = new CaptureKeeper({
      ...shared,
      control,
      roll,
      nowNs: scheduleNs,
      stampNs: nowNs,
      monotonicMs: () => this.#monotonicMs,
    })
    this.#parts = { writer, control, keeper, clock }
    await keeper.tick()
  }

  async end(): Promise<void> {
    this.engine.refusal = undefined
    await this.#parts?.control[Symbol.asyncDispose]()
    await this.#parts?.clock?.[Symbol.asyncDispose]()
    await this.#parts?.writer[Symbol.asyncDispose]()
  }

  async #openClock(nowNs: () => bigint): Promise<RecorderClock | undefined> {
    if (!this.#isClockGuarded) return undefined
    const clock = await RecorderClock.open({
      clocks: { realtimeNs: nowNs, monotonicNs: () => BigInt(this.#monotonicMs) * 1_000_000n },
      bootId: 'this boot',
      isSynced: () => false,
      paths: storePaths(this.#root),
      events: { append: () => undefined },
      log: createLog('test', 'silent'),
    })
    clock.learn(undefined)
    return clock
  }

  get #open() {
    if (this.#parts === undefined) throw new Error('the recorder is away')
    return this.#parts
  }
}
