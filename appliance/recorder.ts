/**
 * The recorder: the only writer of a store, commanded over the store's Unix socket. A process of
 * its own, so that no download and no bad query can disturb what is written.
 */
import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { pathToFileURL } from 'node:url'
import { clockNs, isClockSynced } from '../native/addon.ts'
import { readBootId } from '../src/base/boot-id.ts'
import { CapfleetError } from '../src/base/error.ts'
import { FairLimit } from '../src/base/fair-limit.ts'
import { createLog, type Log } from '../src/base/log.ts'
import { openSocketFolder } from '../src/base/socket-folder.ts'
import { loadApplianceConfig, type RetentionSettings } from './appliance-config.ts'
import { EventLog, type EventSink } from './events/event-log.ts'
import type { ImportRequest, ImportSettings, ImportWatch } from './link/import-request.ts'
import { readLines } from './link/read-lines.ts'
import { formatRecorderError, type RecorderRequest, recorderRequestSchema } from './link/recorder-protocol.ts'
import type { CaptureControl } from './recorder/capture-control.ts'
import { CaptureService, type CaptureServiceOptions } from './recorder/capture-service.ts'
import { ClockWatch } from './recorder/clock-watch.ts'
import { RecorderClock } from './recorder/recorder-clock.ts'
import { raisePriority } from './recorder/recorder-priority.ts'
import { reindexStore } from './recorder/reindex.ts'
import { Retention } from './recorder/retention.ts'
import { newestStoredNs } from './recorder/retention-order.ts'
import { StoreWriter } from './recorder/store-writer.ts'
import { CaptureCatalogue } from './store/capture-catalogue.ts'
import { toJson } from './store/capture-record.ts'
import type { ClockHold } from './store/clock-record.ts'
import { SOCKET_NAME, type StorePaths, storePaths } from './store/store-paths.ts'

export interface RecorderOptions {
  readonly storePath: string
  readonly log: Log
  readonly imports?: ImportSettings | undefined
  /** Absent: nothing is ever removed to make room. */
  readonly retention?: RetentionSettings | undefined
  /** Absent: this recorder starts and stops no capture, and leaves an active one alone. */
  readonly capture?:
    | Omit<
        CaptureServiceOptions,
        'events' | 'log' | 'onSegmentFinished' | 'checkRoom' | 'scheduleNs' | 'clockHold'
      >
    | undefined
}

const GROUP_SOCKET_MODE = 0o660
/** What the recorder makes, its group may read and nobody else may see, whatever started it says. */
const UMASK = 0o027

export interface RunningRecorder {
  /** Cancels running commands and gives the store up. */
  close(): Promise<void>
}

/** Fails with store-unavailable when the store cannot be used or has a recorder already. */
export async function startRecorder(options: RecorderOptions): Promise<RunningRecorder> {
  await using parts = new AsyncDisposableStack()
  const writer = parts.use(await StoreWriter.open(options.storePath, options.imports))
  const { log } = options
  const events = parts.use(new EventLog(options.storePath, { log }))
  events.append('recorder-started', { pid: process.pid })
  parts.use(ClockWatch.start({ events, clocks: CLOCKS }))
  const clock = parts.use(await openClock(options.storePath, events, log))
  // The capture first: every moment before it is lost. One for which there is no room ends at the first look for room.
  let retention: Retention | undefined
  const service = await openCapture(writer, {
    ...options,
    events,
    clock,
    onSegmentFinished: () => retention?.check(),
    checkRoom: () => retention?.checkRoom(),
  })
  if (service) parts.use(service)
  retention = await openRetention(writer, { ...options, events, clock })
  if (retention) parts.use(retention)
  const { socketPath } = parts.use(openSocketFolder(options.storePath, SOCKET_NAME))
  const conversations = parts.use(
    new Conversations({
      paths: storePaths(options.storePath),
      writer,
      capture: service?.control,
      retention,
      clock,
      events,
      log,
    }),
  )
  const server = createServer((socket) => conversations.start(socket))
  // Whoever holds the lock is the only recorder: a socket that lies there is a dead one's.
  rmSync(socketPath, { force: true })
  server.listen(socketPath)
  await once(server, 'listening')
  parts.defer(() => closeServer(server))
  // Who may write to it may command the recorder: its group, so that the appliance can be another user.
  chmodSync(socketPath, GROUP_SOCKET_MODE)
  log.info('recorder.started', { store: options.storePath })
  const owner = parts.move()
  return {
    async close() {
      await owner.disposeAsync()
      log.info('recorder.stopped', { store: options.storePath })
    },
  }
}

/** For the command line: the recorder of the appliance that this configuration describes. */
export async function startRecorderFromFile(
  configPath: string,
): Promise<RunningRecorder & { readonly address: string; readonly drainMs: number }> {
  const config = await loadApplianceConfig(configPath)
  const log = createLog('recorder', config.logLevel)
  process.umask(UMASK)
  if (config.capture.ports.length > 0) raisePriority(log)
  const recorder = await startRecorder({
    storePath: config.store,
    imports: config.imports,
    retention: config.retention,
    capture: { timeZone: config.timeZone, config: config.capture },
    log,
  })
  // An address has no spaces, a folder may.
  return { ...recorder, address: pathToFileURL(config.store).href, drainMs: 0 }
}

interface Watched extends RecorderOptions {
  readonly events: EventSink
  readonly clock: RecorderClock
}

async function openClock(storePath: string, events: EventSink, log: Log): Promise<RecorderClock> {
  const paths = storePaths(storePath)
  return await RecorderClock.start({
    clocks: CLOCKS,
    bootId: await readBootId(),
    isSynced: isClockSynced,
    findNewestNs: async () => newestStoredNs(await new CaptureCatalogue(paths, log).listFinished()),
    paths,
    events,
    log,
  })
}

async function openCapture(
  writer: StoreWriter,
  { capture, ...watched }: Watched & Pick<CaptureServiceOptions, 'onSegmentFinished' | 'checkRoom'>,
): Promise<CaptureService | undefined> {
  const { clock } = watched
  const times = { scheduleNs: () => clock.scheduleNs(), clockHold: () => clock.hold }
  return capture && (await CaptureService.open(writer, { ...capture, ...watched, ...times }))
}

async function openRetention(
  writer: StoreWriter,
  { storePath, retention: settings, events, clock, log }: Watched,
): Promise<Retention | undefined> {
  if (settings === undefined) return undefined
  const paths = storePaths(storePath)
  return await Retention.start({ writer, paths, settings, events, ages: clock, log })
}

const CLOCKS = { realtimeNs: clockNs, monotonicNs: () => process.hrtime.bigint() }

/** Takes no new connection. The running ones are ended by their owner. */
async function closeServer(server: Server): Promise<void> {
  server.close()
}

interface ConversationParts {
  readonly paths: StorePaths
  readonly writer: StoreWriter
  readonly capture: CaptureControl | undefined
  readonly retention: Retention | undefined
  readonly clock: RecorderClock
  readonly events: EventSink
  readonly log: Log
}

/** The commands that are being carried out. */
class Conversations implements AsyncDisposable {
  readonly #paths: StorePaths
  readonly #writer: StoreWriter
  readonly #capture: CaptureControl | undefined
  readonly #retention: Retention | undefined
  readonly #clock: RecorderClock
  readonly #events: EventSink
  readonly #log: Log
  readonly #running = new Map<Socket, Promise<void>>()
  /** Two at once would write the same sieves. */
  readonly #reindexing = new FairLimit({ places: 1 })

  constructor({ paths, writer, capture, retention, clock, events, log }: ConversationParts) {
    this.#paths = paths
    this.#writer = writer
    this.#capture = capture
    this.#retention = retention
    this.#clock = clock
    this.#events = events
    this.#log = log
  }

  start(socket: Socket): void {
    socket.on('error', (err) => this.#log.debug('recorder.client-error', { err }))
    const done = this.#converse(socket)
      .catch((err: unknown) => this.#log.error('recorder.internal-error', { err }))
      .finally(() => this.#running.delete(socket))
    this.#running.set(socket, done)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#running.keys()) socket.destroy()
    await Promise.all(this.#running.values())
  }

  async #converse(socket: Socket): Promise<void> {
    const gone = new AbortController()
    socket.once('close', () =>
      gone.abort(new CapfleetError('store-unavailable', 'the command was cancelled')),
    )
    const line = await firstLine(socket)
    if (line === undefined) return
    // Reading on is how the end of the connection is noticed.
    socket.resume()
    const send = (answer: Record<string, unknown>): void => {
      if (socket.writable) socket.write(`${toJson(answer)}\n`)
    }
    try {
      const request = parseRequest(line)
      const result = await this.#execute(request, gone.signal, send)
      // The state of the capture is asked for every second.
      const level = request.command === 'capture-report' ? 'debug' : 'info'
      this.#log[level]('recorder.command', { command: request.command, name: nameOf(request) })
      send({ result })
    } catch (error) {
      if (!(error instanceof CapfleetError)) this.#log.error('recorder.command-failed', { err: error })
      send(formatRecorderError(toCapfleetError(error)))
    }
    socket.end()
  }

  #execute(
    request: RecorderRequest,
    signal: AbortSignal,
    send: (answer: Record<string, unknown>) => void,
  ): Promise<unknown> {
    switch (request.command) {
      case 'info':
        return Promise.resolve({ pid: process.pid })
      case 'import':
        return this.#import(request, { signal, onProgress: (progress) => send({ progress }) })
      case 'delete':
        return this.#delete(request.name)
      case 'reindex':
        return this.#reindex({ signal, onProgress: (progress) => send({ progress }) })
      case 'trust-clock':
        return Promise.resolve(this.#trustClock())
      case 'capture-start':
        return this.#captureControl().start({ baseName: request.name }, signal)
      case 'capture-stop':
        return this.#captureControl().stop(request.stopsScheduled, signal)
      case 'capture-report':
        return Promise.resolve(this.#captureControl().report())
    }
  }

  async #import(request: ImportRequest, watch: ImportWatch): Promise<unknown> {
    try {
      return await this.#importWithin(request, watch)
    } catch (error) {
      if (watch.signal?.aborted || !(error instanceof CapfleetError)) throw error
      this.#events.append('import-failed', { name: request.name, code: error.code })
      const wayOut = this.#retention?.wayOut(request.mayEvict === true)
      if (error.code !== 'store-full' || wayOut === undefined) throw error
      throw new CapfleetError(
        'store-full',
        `${request.name}: ${error.message}; nothing of it is kept; ${wayOut}`,
        {
          cause: error,
        },
      )
    } finally {
      // What a failed import has left free, a capture may be waiting for.
      this.#retention?.check()
    }
  }

  async #importWithin(request: ImportRequest, watch: ImportWatch): Promise<unknown> {
    if (this.#retention === undefined) return await this.#writer.importCapture(request, watch)
    using room = await this.#retention.giveRoom(await sizeOf(request.files), request.mayEvict === true)
    const signal = watch.signal === undefined ? room.signal : AbortSignal.any([watch.signal, room.signal])
    return await this.#writer.importCapture(request, { ...watch, signal }, room)
  }

  async #reindex(watch: ImportWatch & { readonly signal: AbortSignal }): Promise<unknown> {
    using _turn = await this.#reindexing.acquire(watch.signal)
    return await reindexStore(
      {
        paths: this.#paths,
        log: this.#log,
        onGrowth: async (path) => await this.#retention?.noteGrowth(path),
      },
      watch,
    )
  }

  async #delete(name: string): Promise<unknown> {
    if (this.#capture?.name === name) {
      throw new CapfleetError('capture-active', `${name} is being recorded; stop it first`, {
        param: 'StreamName',
      })
    }
    const deleted = await this.#writer.deleteCapture(name)
    // Whoever starts a capture next shall find the room.
    await this.#retention?.makeRoom(0n)
    return deleted
  }

  #trustClock(): { readonly before: ClockHold } {
    const before = this.#clock.hold
    this.#clock.confirm()
    this.#retention?.check()
    return { before }
  }

  #captureControl(): CaptureControl {
    if (this.#capture !== undefined) return this.#capture
    throw new CapfleetError(
      'store-unavailable',
      'the recorder that runs now only imports; start one with `capfleet recorder`',
    )
  }
}

/** undefined when the client says nothing. */
async function firstLine(socket: Socket): Promise<string | undefined> {
  for await (const line of readLines(socket)) return line
  return undefined
}

function parseRequest(line: string): RecorderRequest {
  try {
    return recorderRequestSchema.parse(JSON.parse(line))
  } catch (cause) {
    throw new CapfleetError('bad-parameter', 'the recorder does not know this command', { cause })
  }
}

/** Bytes of all files together; one that is not there takes nothing. */
async function sizeOf(files: readonly string[]): Promise<bigint> {
  const found = await Promise.all(files.map((file) => stat(file, { bigint: true }).catch(() => undefined)))
  return found.reduce((sum, entry) => sum + (entry?.size ?? 0n), 0n)
}

function nameOf(request: RecorderRequest): string | undefined {
  return 'name' in request ? request.name : undefined
}

function toCapfleetError(error: unknown): CapfleetError {
  if (error instanceof CapfleetError) return error
  const code = (error as NodeJS.ErrnoException).code === 'ENOSPC' ? 'store-full' : 'store-unavailable'
  return new CapfleetError(code, `the recorder failed: ${String(error)}`, { cause: error })
}
