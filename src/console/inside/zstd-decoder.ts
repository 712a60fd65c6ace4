/** The page's interface to the decoder, which is loaded when the packet view is first used. */
import { Problem } from '../base/ask-gateway.ts'
import { TEXTS } from '../texts.ts'
import type { Decoded, DecodeOrder } from './decoder-worker.ts'

let worker: Worker | undefined
let orders = 0

export function decodeZstd(compressed: Uint8Array): Promise<Uint8Array> {
  worker ??= new Worker(new URL('./decoder-worker.ts', import.meta.url), { type: 'module' })
  const decoder = worker
  orders += 1
  const order: DecodeOrder = { id: orders, compressed }
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      decoder.removeEventListener('message', onMessage)
      decoder.removeEventListener('error', onError)
    }
    const onMessage = ({ data }: MessageEvent<Decoded>): void => {
      if (data.id !== order.id) return
      leave()
      if (data.bytes === undefined) reject(broken())
      else resolve(data.bytes)
    }
    const onError = (): void => {
      leave()
      decoder.terminate()
      if (worker === decoder) worker = undefined
      reject(broken())
    }
    decoder.addEventListener('message', onMessage)
    decoder.addEventListener('error', onError)
    decoder.postMessage(order)
  })
}

function broken(): Problem {
  return new Problem({ code: 'bad-zstd', status: 0, detail: TEXTS.inside.undecoded })
}
