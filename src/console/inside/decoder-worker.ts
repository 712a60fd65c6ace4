/**
 * Decodes zstd in a worker. The WebAssembly of zstd-codec would need a policy that allows evaluation; this is its
 * plain JavaScript, from which the build has removed code generated from text.
 */
import startBinding from 'zstd-codec/lib/zstd-codec-binding.js'

/** Message to the worker. */
export interface DecodeOrder {
  readonly id: number
  readonly compressed: Uint8Array
}

/** Message from the worker; without bytes: the input is not zstd, or the codec failed. */
export interface Decoded {
  readonly id: number
  readonly bytes: Uint8Array | undefined
}

type Binding = ReturnType<typeof startBinding>

/** Not the binding itself: it has a method `then` that calls back with itself, so a promise would never resolve. */
const ready = new Promise<Binding['ZstdDecompressStreamBinding']>((resolve) => {
  const binding: Partial<Binding> = {}
  binding.onRuntimeInitialized = () => {
    if (binding.ZstdDecompressStreamBinding !== undefined) resolve(binding.ZstdDecompressStreamBinding)
  }
  startBinding(binding)
})

self.addEventListener('message', (event: MessageEvent<DecodeOrder>) => {
  const { id } = event.data
  decode(event.data).then(
    (decoded) => self.postMessage(decoded),
    () => self.postMessage({ id, bytes: undefined } satisfies Decoded),
  )
})

async function decode({ id, compressed }: DecodeOrder): Promise<Decoded> {
  const Stream = await ready
  const stream = new Stream()
  const pieces: Uint8Array[] = []
  const keep = (output: Uint8Array): void => void pieces.push(output.slice())
  try {
    const isWell = stream.begin() && stream.transform(compressed, keep) && stream.end(keep)
    return { id, bytes: isWell ? joined(pieces) : undefined }
  } finally {
    // The codec's memory does not grow: what is not freed is missing next time.
    stream.delete()
  }
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}
