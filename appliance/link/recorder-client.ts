import { addAbortListener, once } from 'node:events'
import { realpath } from 'node:fs/promises'
import { createConnection, type Socket } from 'node:net'
import type { z } from 'zod'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { openSocketFolder } from '../../src/shared/base/socket-folder.ts'
import { toJson } from '../store/capture-record.ts'
import type { ClockHold } from '../store/clock-record.ts'
import { OWNER_SOCKET_NAME, SOCKET_NAME, type StoredSegmentPlace } from '../store/store-paths.ts'
import { END_FRAME, frameHead } from './body-frames.ts'
import type { CaptureReport, StoppedCapture } from './capture-report.ts'
import type { ImportedCapture, ImportRequest, ImportWatch, StreamedImport } from './import-request.ts'
import { readLines } from './read-lines.ts'
import {
  parseRecorderError,
  recorderAnswerSchema,
  recorderResultSchemas,
  type SentRequest,
  type StoreFinding,
  type VerifiedStore,
} from './recorder-protocol.ts'

/**
 * Commands to the recorder of a store; each opens its own connection. All fail with store-unavailable if no recorder
 * is running or this user may not use it, and otherwise like StoreWriter.
 */
export class RecorderClient {
  readonly #storePath: string

  constructor(storePath: string) {
    this.#storePath = storePath
  }

  info(signal?: AbortSignal): Promise<{ readonly pid: number }> {
    return this.#command({ command: 'info' }, recorderResultSchemas.info, { signal })
  }

  /**
   * Only root and the recorder's user may import. Aborting cancels the import. Symbolic links are resolved here, with
   * the rights of this process: the recorder follows none.
   */
  async importCapture(request: ImportRequest, watch: ImportWatch = {}): Promise<ImportedCapture> {
    const { name, description, mayEvict } = request
    const files = await Promise.all(request.files.map((file) => realpath(file).catch(() => file)))
    return await this.#command(
      { command: 'import', name, files, description, mayEvict },
      recorderResultSchemas.import,
      watch,
      OWNER_SOCKET_NAME,
    )
  }

  /**
   * Imports the bytes of one capture file as they come. The recorder refuses a taken name, and a file without room,
   * before the first byte is read. Fails with the body's error if it has one; an aborted or failed import leaves nothing.
   */
  importStream(
    request: StreamedImport,
    body: AsyncIterable<Uint8Array>,
    watch: ImportWatch = {},
  ): Promise<ImportedCapture> {
    const { name, source, description, mayEvict } = request
    const inputBytes = request.inputBytes === undefined ? undefined : String(request.inputBytes)
    const command = { command: 'import-stream', name, source, description, mayEvict, inputBytes } as const
    return this.#command(command, recorderResultSchemas['import-stream'], watch, SOCKET_NAME, body)
  }

  deleteCapture(name: string, signal?: AbortSignal): Promise<{ readonly bytesFreed: bigint }> {
    return this.#command({ command: 'delete', name }, recorderResultSchemas.delete, { signal })
  }

  /** Aborting ends it; completed work stays. Fails like reindexStore. */
  reindex(watch: ImportWatch): Promise<z.infer<typeof recorderResultSchemas.reindex>> {
    return this.#command({ command: 'reindex' }, recorderResultSchemas.reindex, watch)
  }

  /** Aborting ends it; completed repairs stay. Fails like verifyStore. */
  verify(repair: boolean, watch: ImportWatch): Promise<VerifiedStore> {
    return this.#command({ command: 'verify', repair }, recorderResultSchemas.verify, watch)
  }

  /** Makes the recorder check one segment, and mark what it has lost. Fails like verifyStore. */
  async checkSegment(place: StoredSegmentPlace, signal?: AbortSignal): Promise<readonly StoreFinding[]> {
    const command = { command: 'check-segment', ...place } as const
    return (await this.#command(command, recorderResultSchemas['check-segment'], { signal })).findings
  }

  /** Makes the recorder trust its clock as it is. Resolves to the reason if it did not, or "". */
  async trustClock(signal?: AbortSignal): Promise<ClockHold> {
    const command = { command: 'trust-clock' } as const
    return (await this.#command(command, recorderResultSchemas['trust-clock'], { signal })).before
  }

  /** The start time is appended to `baseName`. Fails like CaptureControl.start. */
  startCapture(baseName: string, signal?: AbortSignal): Promise<CaptureReport> {
    return this.#command(
      { command: 'capture-start', name: baseName },
      recorderResultSchemas['capture-start'],
      { signal },
    )
  }

  /** Fails like CaptureControl.stop. */
  stopCapture(stopsScheduled: boolean, signal?: AbortSignal): Promise<StoppedCapture> {
    return this.#command({ command: 'capture-stop', stopsScheduled }, recorderResultSchemas['capture-stop'], {
      signal,
    })
  }

  captureReport(signal?: AbortSignal): Promise<CaptureReport> {
    return this.#command({ command: 'capture-report' }, recorderResultSchemas['capture-report'], { signal })
  }

  async #command<Schema extends z.ZodType>(
    request: SentRequest,
    schema: Schema,
    watch: ImportWatch,
    socketName: SocketName = SOCKET_NAME,
    body?: AsyncIterable<Uint8Array>,
  ): Promise<z.infer<Schema>> {
    watch.signal?.throwIfAborted()
    const socket = await connect(this.#storePath, socketName)
    using _cancel = watch.signal && addAbortListener(watch.signal, () => socket.destroy())
    try {
      socket.write(`${toJson(request)}\n`)
      return schema.parse(await readResult(socket, watch, body))
    } finally {
      socket.destroy()
    }
  }
}

type SocketName = typeof SOCKET_NAME | typeof OWNER_SOCKET_NAME

/** Completes "this user may not control the recorder of the store FOLDER". */
const WAY_OUT: Readonly<Record<SocketName, string>> = {
  [SOCKET_NAME]: '; that requires the group of the store',
  [OWNER_SOCKET_NAME]: ' to import; run the command as root or as the user of the recorder',
}

async function connect(storePath: string, socketName: SocketName): Promise<Socket> {
  try {
    using folder = openSocketFolder(storePath, socketName)
    const socket = createConnection(folder.socketPath)
    await once(socket, 'connect')
    return socket
  } catch (cause) {
    throw new CapfleetError('store-unavailable', whyUnreachable(storePath, socketName, cause), {
      cause,
    })
  }
}

function whyUnreachable(storePath: string, socketName: SocketName, cause: unknown): string {
  if ((cause as NodeJS.ErrnoException).code === 'EACCES')
    return `this user may not control the recorder of the store ${storePath}${WAY_OUT[socketName]}`
  return `no recorder runs for the store ${storePath}; start one with \`capfleet recorder\``
}

async function readResult(
  socket: Socket,
  watch: ImportWatch,
  body: AsyncIterable<Uint8Array> | undefined,
): Promise<unknown> {
  let bodyFailure: { readonly error: unknown } | undefined
  // An error of the connection appears as its end: the last line is missing.
  socket.on('error', () => undefined)
  for await (const line of readLines(socket)) {
    const answer = recorderAnswerSchema.parse(JSON.parse(line))
    if ('error' in answer) throw parseRecorderError(answer.error)
    if ('result' in answer) return answer.result
    if ('progress' in answer) watch.onProgress?.(answer.progress)
    else if (body !== undefined) {
      void sendBody(socket, body).catch((error: unknown) => {
        bodyFailure = { error }
        socket.destroy()
      })
    }
  }
  watch.signal?.throwIfAborted()
  if (bodyFailure !== undefined) throw bodyFailure.error
  throw new CapfleetError('store-unavailable', 'the recorder stopped before it answered; check its log')
}

/** Ends early, without an error, when the recorder has closed the connection. Fails with the body's error. */
async function sendBody(socket: Socket, body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const bytes of body) {
    if (!socket.writable) return
    if (bytes.length === 0) continue
    socket.write(frameHead(bytes))
    if (!socket.write(bytes)) await drained(socket)
  }
  if (socket.writable) socket.write(END_FRAME)
}

/** Resolves when the socket accepts more, or is closed. */
async function drained(socket: Socket): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      socket.off('drain', done).off('close', done)
      resolve()
    }
    socket.on('drain', done).on('close', done)
  })
}
