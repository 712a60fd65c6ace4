import type { ServerResponse } from 'node:http'
import type { Chunk, Download, DownloadTotals } from '../../native/addon.ts'
import { cutResponse } from '../../src/shared/http/cut-response.ts'
import { resetConnection } from '../../src/shared/http/reset-connection.ts'
import { watchSlowClient } from '../../src/shared/http/slow-client.ts'
import { BodyWriter } from './body-writer.ts'
import type { Reader } from './stream-limit.ts'

/** The source that a body is pulled from. */
export type PacketSource = Pick<Download, 'next' | 'totals' | 'close'>

export interface SendOptions {
  readonly download: PacketSource
  /** Already read, so that a failure to read it could still become a status. */
  readonly firstChunk: Chunk | undefined
  /** Updated with the bytes returned. */
  readonly reader: Reader
  /** A client that accepts nothing for this long is cut off. */
  readonly idleTimeoutMs: number
  /** A client that hardly reads for this long while others are waiting for its slot is cut off too. */
  readonly slowAfterMs: number
  /** Whether others are waiting for the slot. */
  readonly isWanted: () => boolean
  /** Whether the trailers say how many packets were left out as copies. */
  readonly countsDuplicates: boolean
  /** Bytes that leave the body's format inside an element, to mark a cut. */
  readonly partialElement: Uint8Array
  /** Called when the device has no more work with this download; only the last bytes are in transit. */
  readonly onDrained: () => void
  /** Aborted when the client has left. */
  readonly signal: AbortSignal
  /** Aborts, with an error as its reason, when the client loses access; `download` is closed then. */
  readonly revoked: AbortSignal | undefined
}

export type SendOutcome =
  | { readonly kind: 'complete' | 'client-gone' | 'idle-timeout' | 'too-slow' }
  | { readonly kind: 'failed'; readonly error: unknown }

/**
 * Sends the body whose head has been written. On success the response is ended, with the completion trailers; on
 * failure it is cut inside a record, so that nobody takes it for complete. All of the engine's buffers have been
 * returned when this resolves.
 */
export async function sendDownload(res: ServerResponse, options: SendOptions): Promise<SendOutcome> {
  const writer = new BodyWriter(res)
  const idle = watchProgress(res, writer, options.idleTimeoutMs)
  const { revoked, signal } = options
  let isTooSlow = false
  const cutOff = (): void => {
    isTooSlow = true
    if (res.socket !== null) resetConnection(res.socket)
  }
  const left = (): SendOutcome | undefined => {
    if (idle.expired) return { kind: 'idle-timeout' }
    if (isTooSlow) return { kind: 'too-slow' }
    return signal.aborted ? { kind: 'client-gone' } : undefined
  }
  try {
    using slow = watchSlow(res, options, cutOff)
    await pump(writer, options)
    slow[Symbol.dispose]()
    revoked?.throwIfAborted()
    const gone = left()
    if (gone !== undefined) return gone
    options.onDrained()
    await endResponse(res, options)
    return { kind: res.writableFinished ? 'complete' : 'client-gone' }
  } catch (error) {
    const gone = left()
    if (gone !== undefined) return gone
    options.onDrained()
    await cutResponse(res, options.partialElement)
    return { kind: 'failed', error: revoked?.aborted === true ? revoked.reason : error }
  } finally {
    idle.stop()
  }
}

function watchSlow(
  res: ServerResponse,
  { reader, slowAfterMs, isWanted }: SendOptions,
  onSlow: () => void,
): Disposable {
  return watchSlowClient({ res, turnMs: slowAfterMs, writtenBytes: () => reader.bytes, isWanted, onSlow })
}

async function pump(
  writer: BodyWriter,
  { download, firstChunk, reader, signal, revoked }: SendOptions,
): Promise<void> {
  for (let chunk = firstChunk; chunk !== undefined; chunk = await download.next()) {
    reader.bytes += BigInt(chunk.bytes.length)
    await writer.write(chunk)
    if (signal.aborted || revoked?.aborted === true) return
  }
  await writer.flush()
}

async function endResponse(
  res: ServerResponse,
  { download, countsDuplicates, signal }: SendOptions,
): Promise<void> {
  if (signal.aborted) return
  if (res.hasHeader('Trailer')) res.addTrailers(completionTrailers(download.totals(), countsDuplicates))
  const ended = new Promise<void>((resolve) => {
    res.once('finish', resolve)
    res.once('close', resolve)
  })
  res.end()
  await ended
}

/** Names of completionTrailers, for the head. */
export const COMPLETION_TRAILER_NAMES =
  'Capfleet-Complete, Capfleet-Packets, Capfleet-Bytes, Capfleet-Corrupt-Blocks, Capfleet-TS-Fallbacks, ' +
  'Capfleet-Late-Packets, Capfleet-Duplicates, Capfleet-Truncated, Capfleet-Next-Ns'

/**
 * Only a stream that was not cut has these. Complete is 0 if damaged blocks were left out. Bytes are those of the body
 * as sent. Truncated is 1 if MaxBytes or MaxPackets cut off packets; Next-Ns is the timestamp of the first of them.
 */
function completionTrailers(totals: DownloadTotals, countsDuplicates: boolean): Record<string, string> {
  return {
    'Capfleet-Complete': totals.corruptBlocks > 0n ? '0' : '1',
    'Capfleet-Packets': String(totals.packets),
    'Capfleet-Bytes': String(totals.outputBytes),
    'Capfleet-Corrupt-Blocks': String(totals.corruptBlocks),
    'Capfleet-TS-Fallbacks': String(totals.vendorTimeFallbacks),
    'Capfleet-Late-Packets': String(totals.latePackets),
    ...(countsDuplicates ? { 'Capfleet-Duplicates': String(totals.duplicates) } : {}),
    'Capfleet-Truncated': totals.truncated ? '1' : '0',
    ...(totals.nextNs === undefined ? {} : { 'Capfleet-Next-Ns': String(totals.nextNs) }),
  }
}

/**
 * Resets the connection if the client reads no byte for `idleTimeoutMs`. Node's socket time-out counts a partial write
 * as progress, including the one just begun, so it may take twice as long. Time without anything to read is attributed
 * to the engine.
 */
function watchProgress(res: ServerResponse, writer: BodyWriter, idleTimeoutMs: number) {
  const watch = {
    expired: false,
    stop: () => {
      res.setTimeout(0)
      res.off('timeout', onTimeout)
    },
  }
  const onTimeout = (): void => {
    if (!writer.isBusy) {
      res.setTimeout(idleTimeoutMs)
      return
    }
    watch.expired = true
    if (res.socket !== null) resetConnection(res.socket)
  }
  res.setTimeout(idleTimeoutMs)
  res.on('timeout', onTimeout)
  return watch
}
