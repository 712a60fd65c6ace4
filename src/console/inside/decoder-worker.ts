/**
 * Decodes zstd beside the page. The WebAssembly of zstd-codec would need a policy that allows evaluation: this is its
 * plain JavaScript, which the build has freed of what makes code of text.
 */
import startBinding from 'zstd-codec/lib/zstd-codec-binding.js'

/** Posted to the worker. */
export interface DecodeOrder {
  readonly id: number
  readonly compressed: Uint8Array
}

/** Posted back; no bytes: what came is no zstd, or the codec failed. */
export interface Decoded {
  readonly id: number
  readonly bytes: Uint8Array | undefined
}

type Binding = ReturnType<typeof startBinding>

/** Not the binding itself: it has a method `then` that calls back with itself, for which a promise would wait for ever. */
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
    // The codec's memory does not grow: what is not given back is missing next time.
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
