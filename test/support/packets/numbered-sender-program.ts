/**
 * Sends numbered UDP packets until its parent ends it, and reports after each batch that all of them have been sent:
 * {sent, atNs}. On any message, it ends after the current batch. Started by numbered-sender.ts in a namespace;
 * arguments: address, packets per tick.
 */
import { createSocket } from 'node:dgram'
import { clockNs } from '../../../native/addon.ts'
import { numberedPayload, TICK_MS } from './numbered-packets.ts'

const [address = '', perTick = '10'] = process.argv.slice(2)
const PORT = 9
const socket = createSocket({ type: 'udp4', sendBufferSize: 2 ** 22 })
await new Promise<void>((resolve) => void socket.connect(PORT, address, resolve))
let sent = 0

function send(number: number): Promise<void> {
  return new Promise((resolve, reject) =>
    socket.send(numberedPayload(number), (error) => (error ? reject(error) : resolve())),
  )
}

/** A parent that has just gone needs no more reports. */
function tell(mark: { readonly sent: number; readonly atNs: string }): Promise<void> {
  return new Promise((resolve) => void process.send?.(mark, undefined, undefined, () => resolve()))
}

let ending = false
process.once('message', () => (ending = true))
process.on('disconnect', () => process.exit())
while (!ending) {
  const next = performance.now() + TICK_MS
  const batch = Array.from({ length: Number(perTick) }, (_, index) => send(sent + index))
  await Promise.all(batch)
  sent += batch.length
  await tell({ sent, atNs: String(clockNs()) })
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())))
}
process.disconnect()
