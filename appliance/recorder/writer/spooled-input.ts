import { addAbortListener } from 'node:events'
import { open } from 'node:fs/promises'
import { CapfleetError } from '../../../src/shared/base/error.ts'

export interface SpoolOptions {
  /** Absent = what the disk holds. */
  readonly maxBytes: bigint | undefined
  readonly signal: AbortSignal | undefined
}

/**
 * Writes the input to a new file, because the importer reads each input twice. Returns its size. Fails with store-full,
 * with the disk's or the input's error, or at once with the signal's reason, even while the input waits.
 */
export async function spoolInput(
  path: string,
  input: AsyncIterable<Uint8Array>,
  { maxBytes, signal = NEVER }: SpoolOptions,
): Promise<bigint> {
  await using file = await open(path, 'wx', 0o640)
  const pieces = input[Symbol.asyncIterator]()
  let bytes = 0n
  try {
    for (;;) {
      const next = await nextUnlessAborted(pieces, signal)
      if (next.done === true) return bytes
      bytes += BigInt(next.value.length)
      refuseWithoutRoom(bytes, maxBytes)
      await writeAll(file, next.value)
    }
  } finally {
    // Not awaited: it ends only after a piece that is being waited for.
    pieces.return?.().catch(() => undefined)
  }
}

/** Fails with store-full if the input is known to need more than `maxBytes`. */
export function refuseWithoutRoom(inputBytes: bigint, maxBytes: bigint | undefined): void {
  if (maxBytes === undefined || inputBytes <= maxBytes) return
  throw new CapfleetError('store-full', `the input needs more than the ${maxBytes} bytes available`)
}

const NEVER = new AbortController().signal

async function nextUnlessAborted(
  pieces: AsyncIterator<Uint8Array>,
  signal: AbortSignal,
): Promise<IteratorResult<Uint8Array>> {
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  using _listener = addAbortListener(signal, () => reject(signal.reason))
  return await Promise.race([pieces.next(), aborted])
}

async function writeAll(file: Awaited<ReturnType<typeof open>>, bytes: Uint8Array): Promise<void> {
  for (let left = bytes; left.length > 0; ) {
    const { bytesWritten } = await file.write(left)
    left = left.subarray(bytesWritten)
  }
}
