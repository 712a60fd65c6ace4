/**
 * Waits until clients have what was sent to them. The kernel takes some MiB of an answer at once, and goes on to deliver
 * them behind the end of the program; but not behind that of its network namespace, which is that of its pod or container.
 * A client that was slow to read would then wait for ever: neither its last bytes nor the end of the connection come.
 */
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

/** The kernel tells of connections that the program has closed by its table only, never by an event. */
const LOOK_AGAIN_MS = 50
/** The other side has not confirmed all bytes, and the end behind them, in these states: FIN_WAIT1, LAST_ACK, CLOSING. */
const UNCONFIRMED_STATES = new Set(['04', '09', '0B'])

/**
 * Resolves when no closed connection of the local `port` has bytes that its client has not confirmed, at the latest after
 * `limitMs`; how many have such bytes then.
 */
export async function lastBytesDelivered(port: number, limitMs: number): Promise<number> {
  const deadlineMs = performance.now() + limitMs
  for (;;) {
    const left = await unconfirmed(port)
    if (left === 0 || performance.now() + LOOK_AGAIN_MS > deadlineMs) return left
    await delay(LOOK_AGAIN_MS)
  }
}

async function unconfirmed(port: number): Promise<number> {
  const tables = await Promise.all(['tcp', 'tcp6'].map(readTable))
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return tables.flat().filter(([, local = '', , state = '']) => {
    return local.endsWith(suffix) && UNCONFIRMED_STATES.has(state)
  }).length
}

/** The fields of each line: number, local address, remote address, state. */
async function readTable(name: string): Promise<string[][]> {
  // A kernel without IPv6 has no tcp6.
  const text = await readFile(`/proc/self/net/${name}`, 'latin1').catch(() => '')
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/, 4))
}
