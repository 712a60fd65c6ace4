import { stat } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { FairLimit } from '../../src/shared/base/fair-limit.ts'
import { isFullDisk } from '../../src/shared/base/full-disk.ts'
import type { Log } from '../../src/shared/base/log.ts'
import type { EventSink } from '../events/event-log.ts'
import { readFrames } from '../link/body-frames.ts'
import type { CaptureReport } from '../link/capture-report.ts'
import type { ImportRequest, ImportRoom, ImportWatch, StreamedImport } from '../link/import-request.ts'
import { readLines } from '../link/read-lines.ts'
import {
  formatRecorderError,
  type RecorderRequest,
  recorderRequestSchema,
} from '../link/recorder-protocol.ts'
import { toJson } from '../store/capture-record.ts'
import type { ClockHold } from '../store/clock-record.ts'
import { OWNER_SOCKET_NAME, type StoredSegmentPlace } from '../store/store-paths.ts'
import type { StoredCapture } from '../store/stored-capture.ts'
import { type CaptureControl, STARTING_REPORT } from './capture/capture-control.ts'
import type { RecorderClock } from './clock/recorder-clock.ts'
import type { CommandRights } from './command-sockets.ts'
import { reindexStore } from './reindex.ts'
import type { Retention } from './retention/retention.ts'
import { checkSegment, verifyStore } from './verify-store.ts'
import type { StoreWriter } from './writer/store-writer.ts'

export interface ConversationParts {
  readonly writer: StoreWriter
  readonly clock: RecorderClock
  readonly events: EventSink
  readonly log: Log
}

/** A connection, and what its command needs of it. */
interface Conversation {
  readonly socket: Socket
  readonly signal: AbortSignal
  readonly send: (answer: Record<string, unknown>) => void
}

/** Parts that most commands need, and that take a while to open when the recorder starts. */
export interface OpenedParts {
  /** undefined: this recorder does not start or stop captures. */
  readonly capture: CaptureControl | undefined
  /** undefined: this recorder removes nothing to make room. */
  readonly retention: Retention | undefined
}

/** The commands in progress on the recorder's socket. Until open() is called most of them wait. */
export class Conversations implements AsyncDisposable {
  readonly #writer: StoreWriter
  readonly #clock: RecorderClock
  readonly #events: EventSink
  readonly #log: Log
  readonly #opening = Promise.withResolvers<void>()
  #opened: OpenedParts | undefined
  readonly #running = new Map<Socket, Promise<void>>()
  /** Two at once would write the same files. */
  readonly #reindexing = new FairLimit({ places: 1 })

  constructor({ writer, clock, events, log }: ConversationParts) {
    this.#writer = writer
    this.#clock = clock
    this.#events = events
    this.#log = log
  }

  /** Lets waiting commands continue. */
  open(parts: OpenedParts): void {
    this.#opened = parts
    this.#opening.resolve()
  }

  start(socket: Socket, rights: CommandRights): void {
    socket.on('error', (err) => this.#log.debug('recorder.client-error', { err }))
    const done = this.#converse(socket, rights)
      .catch((err: unknown) => this.#log.error('recorder.internal-error', { err }))
      .finally(() => this.#running.delete(socket))
    this.#running.set(socket, done)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#running.keys()) socket.destroy()
    await Promise.all(this.#running.values())
  }

  async #converse(socket: Socket, rights: CommandRights): Promise<void> {
    const gone = new AbortController()
    socket.once('close', () =>
      gone.abort(new CapfleetError('store-unavailable', 'the command was cancelled')),
    )
    const line = await firstLine(socket)
    if (line === undefined) return
    // The end of the connection is only noticed while reading.
    socket.resume()
    const send = (answer: Record<string, unknown>): void => {
      if (socket.writable) socket.write(`${toJson(answer)}\n`)
    }
    try {
      const request = parseRequest(line)
      refuseWithoutRights(request, rights)
      const result = await this.#execute(request, { socket, signal: gone.signal, send })
      // The state of the capture is requested every second.
      const level = request.command === 'capture-report' ? 'debug' : 'info'
      this.#log[level]('recorder.command', { command: request.command, name: nameOf(request) })
      send({ result })
    } catch (error) {
      if (!(error instanceof CapfleetError)) this.#log.error('recorder.command-failed', { err: error })
      send(formatRecorderError(toCapfleetError(error)))
    }
    socket.end()
  }

  async #execute(request: RecorderRequest, { socket, signal, send }: Conversation): Promise<unknown> {
    if (request.command === 'info') return { pid: process.pid }
    if (request.command === 'capture-report' && this.#opened === undefined) return STARTING_REPORT
    await this.#untilOpen(signal)
    switch (request.command) {
      case 'import':
        return this.#import(request, { signal, onProgress: (progress) => send({ progress }) })
      case 'import-stream':
        return this.#importStream(request, { socket, signal, send })
      case 'delete':
        return this.#delete(request.name)
      case 'reindex':
        return this.#reindex({ signal, onProgress: (progress) => send({ progress }) })
      case 'verify':
        return this.#verify(request.repair, { signal, onProgress: (progress) => send({ progress }) })
      case 'check-segment':
        return this.#checkSegment(request, signal)
      case 'trust-clock':
        return this.#trustClock()
      case 'capture-start':
        await this.#retention?.knowsRoom()
        return this.#captureControl().start({ baseName: request.name }, signal)
      case 'capture-stop':
        return this.#captureControl().stop(request.stopsScheduled, signal)
      case 'capture-report':
        return this.#report()
    }
  }

  get #capture(): CaptureControl | undefined {
    return this.#opened?.capture
  }

  get #retention(): Retention | undefined {
    return this.#opened?.retention
  }

  /** Rejects with the signal's reason. */
  #untilOpen(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      void this.#opening.promise.then(resolve)
    })
  }

  #report(): CaptureReport {
    const report = this.#captureControl().report()
    const retention = this.#retention?.report()
    return { ...report, message: report.message || (retention?.problem ?? ''), retention }
  }

  async #import(request: ImportRequest, watch: ImportWatch): Promise<unknown> {
    const inputBytes = await sizeOf(request.files)
    return await this.#importWithin({ ...request, inputBytes }, watch, (signal, room) =>
      this.#writer.importCapture(request, { ...watch, signal }, room),
    )
  }

  async #importStream(
    request: StreamedImport,
    { socket, signal, send }: Conversation,
  ): Promise<StoredCapture> {
    const watch: ImportWatch = { signal, onProgress: (progress) => send({ progress }) }
    const body = async function* (): AsyncGenerator<Buffer, void> {
      try {
        send({ ready: true })
        yield* readFrames(socket.iterator({ destroyOnReturn: false }))
      } finally {
        // The end of the connection is only noticed while reading; and what is still sent after a failure is discarded,
        // because unread it would make the answer disappear.
        socket.resume()
      }
    }
    return await this.#importWithin(
      { ...request, inputBytes: request.inputBytes ?? 0n },
      watch,
      (within, room) => this.#writer.importStream(request, body(), { ...watch, signal: within }, room),
    )
  }

  /** Runs an import in the room that it gets; `signal` also aborts if it has to give way. */
  async #importWithin(
    request: Pick<ImportRequest, 'name' | 'mayEvict'> & { readonly inputBytes: bigint },
    watch: ImportWatch,
    run: (signal: AbortSignal | undefined, room?: ImportRoom) => Promise<StoredCapture>,
  ): Promise<StoredCapture> {
    try {
      if (this.#retention === undefined) return await run(watch.signal)
      using room = await this.#retention.giveRoom(request.inputBytes, request.mayEvict === true)
      return await run(
        watch.signal === undefined ? room.signal : AbortSignal.any([watch.signal, room.signal]),
        room,
      )
    } catch (error) {
      if (watch.signal?.aborted || !(error instanceof CapfleetError)) throw error
      // Nothing was begun: one who repeats a name must not fill the log.
      if (error.code !== 'capture-exists')
        this.#events.append('import-failed', { name: request.name, code: error.code })
      const wayOut = this.#retention?.wayOut(request.mayEvict === true)
      if (error.code !== 'store-full' || wayOut === undefined) throw error
      throw new CapfleetError(
        'store-full',
        `${request.name}: ${error.message}; nothing of it was kept; ${wayOut}`,
        {
          cause: error,
        },
      )
    } finally {
      // A capture may be waiting for the space that a failed import has freed.
      this.#retention?.check()
    }
  }

  async #reindex(watch: ImportWatch & { readonly signal: AbortSignal }): Promise<unknown> {
    using _turn = await this.#reindexing.acquire(watch.signal)
    return await reindexStore(this.#writer, watch)
  }

  #trustClock(): { readonly before: ClockHold } {
    const before = this.#clock.hold
    this.#clock.confirm()
    this.#retention?.check()
    return { before }
  }

  async #verify(repair: boolean, watch: ImportWatch & { readonly signal: AbortSignal }): Promise<unknown> {
    using _turn = await this.#reindexing.acquire(watch.signal)
    return await verifyStore(this.#writer, { repair }, watch)
  }

  async #checkSegment(place: StoredSegmentPlace, signal: AbortSignal): Promise<unknown> {
    using _turn = await this.#reindexing.acquire(signal)
    return { findings: await checkSegment(this.#writer, place, { signal }) }
  }

  async #delete(name: string): Promise<unknown> {
    if (this.#capture?.name === name) {
      throw new CapfleetError('capture-active', `${name} is being recorded; stop it first`, {
        param: 'StreamName',
      })
    }
    const deleted = await this.#writer.deleteCapture(name)
    // The next capture to start should find the room.
    await this.#retention?.makeRoom(0n)
    return deleted
  }

  #captureControl(): CaptureControl {
    if (this.#capture !== undefined) return this.#capture
    throw new CapfleetError(
      'store-unavailable',
      'the recorder running now only imports; start one with `capfleet recorder`',
    )
  }
}

/** Returns undefined if the client sends nothing. */
async function firstLine(socket: Socket): Promise<string | undefined> {
  for await (const line of readLines(socket)) return line
  return undefined
}

function parseRequest(line: string): RecorderRequest {
  try {
    return recorderRequestSchema.parse(JSON.parse(line))
  } catch (cause) {
    throw new CapfleetError('bad-parameter', 'the recorder does not support this command', { cause })
  }
}

/** Only imports of named files require more rights than those of the group; command-sockets.ts explains why. */
function refuseWithoutRights({ command }: RecorderRequest, rights: CommandRights): void {
  if (command !== 'import' || rights === 'owner') return
  throw new CapfleetError(
    'bad-parameter',
    `the recorder accepts the command "${command}" only on the socket ${OWNER_SOCKET_NAME}; run \`capfleet import\` as root or as the user of the recorder`,
    { param: 'command' },
  )
}

/** Total bytes of all files; a missing one counts as empty. */
async function sizeOf(files: readonly string[]): Promise<bigint> {
  const found = await Promise.all(files.map((file) => stat(file, { bigint: true }).catch(() => undefined)))
  return found.reduce((sum, entry) => sum + (entry?.size ?? 0n), 0n)
}

function nameOf(request: RecorderRequest): string | undefined {
  return 'name' in request ? request.name : undefined
}

function toCapfleetError(error: unknown): CapfleetError {
  if (error instanceof CapfleetError) return error
  const code = isFullDisk(error) ? 'store-full' : 'store-unavailable'
  return new CapfleetError(code, `the recorder failed: ${String(error)}`, { cause: error })
}
