/**
 * The recorder: the only writer of a store, controlled over the store's Unix sockets. A separate process, so that no
 * download or bad query can disturb writing.
 */
import { pathToFileURL } from 'node:url'
import { clockNs, isClockSynced } from '../native/addon.ts'
import { readBootId } from '../src/shared/base/boot-id.ts'
import { createLog, type Log } from '../src/shared/base/log.ts'
import { loadApplianceConfig, type RetentionSettings } from './appliance-config.ts'
import { EventLog } from './events/event-log.ts'
import type { ImportSettings } from './link/import-request.ts'
import { CaptureService, type CaptureServiceOptions } from './recorder/capture/capture-service.ts'
import { ClockWatch } from './recorder/clock/clock-watch.ts'
import { NEVER_NS, RecorderClock } from './recorder/clock/recorder-clock.ts'
import { openCommandSockets } from './recorder/command-sockets.ts'
import { Conversations } from './recorder/conversations.ts'
import { raisePriority } from './recorder/recorder-priority.ts'
import { Retention } from './recorder/retention/retention.ts'
import { StoreWriter } from './recorder/writer/store-writer.ts'
import { type StorePaths, storePaths } from './store/store-paths.ts'

export interface RecorderOptions {
  readonly storePath: string
  readonly log: Log
  readonly imports?: ImportSettings | undefined
  /** Absent: nothing is ever removed to make room. */
  readonly retention?: RetentionSettings | undefined
  /** Absent: this recorder does not start or stop captures, and leaves an active one alone. */
  readonly capture?:
    | Omit<
        CaptureServiceOptions,
        'events' | 'log' | 'onSegmentFinished' | 'checkRoom' | 'startSignal' | 'scheduleNs' | 'clockHold'
      >
    | undefined
}

const NEVER = new AbortController().signal
const BITS_PER_BYTE = 8
/**
 * What the recorder creates is readable by its group and inaccessible to others, whatever the umask it was started
 * with.
 */
const UMASK = 0o027

export interface RunningRecorder {
  /** Cancels running commands and releases the store. */
  close(): Promise<void>
}

/**
 * Accepts commands at once; those that need the capture wait until it has been opened, which is when this resolves.
 * Slow work, such as making room, is done in the background. Fails with store-unavailable if the store cannot be used
 * or has a recorder already, and with the signal's reason if that aborts before the capture is open.
 */
export async function startRecorder(
  options: RecorderOptions,
  signal: AbortSignal = NEVER,
): Promise<RunningRecorder> {
  await using parts = new AsyncDisposableStack()
  const { storePath, log, retention: settings } = options
  const paths = storePaths(storePath)
  const writer = parts.use(await StoreWriter.open(storePath, options.imports))
  const events = parts.use(new EventLog(storePath, { log }))
  events.append('recorder-started', { pid: process.pid })
  writer.watchDamage((name, problems) => {
    for (const message of problems) events.append('capture-damaged', { name, message })
  })
  parts.use(ClockWatch.start({ events, clocks: CLOCKS }))
  const clock = parts.use(await openClock({ paths, events, log }))
  let service: CaptureService | undefined
  let retention: Retention | undefined
  // Commands end before the parts that they use.
  parts.defer(() => service?.[Symbol.asyncDispose]())
  parts.defer(() => retention?.[Symbol.asyncDispose]())
  const conversations = parts.use(new Conversations({ writer, clock, events, log }))
  parts.use(
    await openCommandSockets({
      storePath,
      reserve: writer.reserve,
      log,
      onConnection: (socket, rights) => conversations.start(socket, rights),
    }),
  )
  // The capture first: every moment before it loses packets. A capture without room ends at the first check for room.
  service = await openCapture(writer, {
    ...options,
    events,
    clock,
    onSegmentFinished: () => retention?.check(),
    checkRoom: () => retention?.checkRoom(),
    startSignal: signal,
  })
  signal.throwIfAborted()
  const control = service?.control
  const bytesPerSecond = (): number => (control?.report().counts.bitsPerSecond ?? 0) / BITS_PER_BYTE
  retention =
    settings && Retention.begin({ writer, paths, settings, events, ages: clock, bytesPerSecond, log })
  conversations.open({ capture: control, retention })
  if (clock.isUnlearned) {
    writer.lastStoredAtStart().then(
      (lastNs) => clock.learn(lastNs),
      (err: unknown) => {
        log.warn('clock.not-learned', { err })
        // NTP, PTP or an operator must confirm that the clock is right.
        clock.learn(NEVER_NS)
      },
    )
  }
  writer.removeLeftovers().catch((err: unknown) => log.warn('recorder.leftovers-failed', { err }))
  log.info('recorder.started', { store: storePath })
  const owner = parts.move()
  return {
    async close() {
      await owner.disposeAsync()
      log.info('recorder.stopped', { store: storePath })
    },
  }
}

/** For the command line: the recorder of the appliance with this configuration. */
export async function startRecorderFromFile(
  configPath: string,
  signal: AbortSignal,
): Promise<RunningRecorder & { readonly address: string; readonly drainMs: number }> {
  const config = await loadApplianceConfig(configPath)
  const log = createLog('recorder', config.logLevel)
  process.umask(UMASK)
  if (config.capture.ports.length > 0) raisePriority(log)
  const recorder = await startRecorder(
    {
      storePath: config.store,
      imports: config.imports,
      retention: config.retention,
      capture: { timeZone: config.timeZone, config: config.capture },
      log,
    },
    signal,
  )
  // An address contains no spaces, but a folder may.
  return { ...recorder, address: pathToFileURL(config.store).href, drainMs: 0 }
}

type CaptureParts = RecorderOptions &
  Pick<CaptureServiceOptions, 'events' | 'onSegmentFinished' | 'checkRoom' | 'startSignal'> & {
    readonly clock: RecorderClock
  }

async function openClock({
  paths,
  events,
  log,
}: {
  readonly paths: StorePaths
  readonly events: EventLog
  readonly log: Log
}): Promise<RecorderClock> {
  return await RecorderClock.start({
    clocks: CLOCKS,
    bootId: await readBootId(),
    isSynced: isClockSynced,
    paths,
    events,
    log,
  })
}

async function openCapture(
  writer: StoreWriter,
  { capture, ...watched }: CaptureParts,
): Promise<CaptureService | undefined> {
  const { clock } = watched
  const times = { scheduleNs: () => clock.scheduleNs(), clockHold: () => clock.hold }
  return capture && (await CaptureService.open(writer, { ...capture, ...watched, ...times }))
}

const CLOCKS = { realtimeNs: clockNs, monotonicNs: () => process.hrtime.bigint() }
