/**
 * Waits until clients have received what was sent to them. The kernel accepts several MiB of an answer at once, and
 * continues to deliver them after the program has ended, but not after its network namespace has, which is that of its
 * pod or container. A slow client would then wait forever: neither its last bytes nor the end of the connection would
 * arrive.
 */
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** The kernel shows what clients have acknowledged only in its table, without any event. */
const LOOK_AGAIN_MS = 50
const PAUSE_PER_READING = 10
/** Clients that acknowledge no byte for this long have gone, or will not read them; nothing waits for them. */
const STALLED_MS = 60_000
/**
 * The connection is open (ESTABLISHED), or our side has ended and the other has not acknowledged all bytes and that
 * end (FIN_WAIT1, LAST_ACK, CLOSING).
 */
const UNCONFIRMED_STATES = new Set(['01', '04', '09', '0B'])

/**
 * Resolves when no connection of the local `port` has bytes, or an end, that its client has not acknowledged; at the
 * latest after `limitMs`, or when none of these clients makes progress. Returns how many have such bytes then.
 * REQUIRES: nothing listens there.
 */
export async function lastBytesDelivered(port: number, limitMs: number): Promise<number> {
  const deadlineMs = performance.now() + limitMs
  let last = { connections: 0, bytes: -1 }
  let movedMs = performance.now()
  for (;;) {
    const left = await unconfirmed(port)
    const nowMs = performance.now()
    if (left.connections !== last.connections || left.bytes !== last.bytes) movedMs = nowMs
    last = left
    const isLate = nowMs + LOOK_AGAIN_MS > deadlineMs || nowMs - movedMs >= STALLED_MS
    if (left.connections === 0 || isLate) return left.connections
    await delay(LOOK_AGAIN_MS)
  }
}

/**
 * Resolves with true when the client has acknowledged everything written to the connection, with false when the
 * connection is gone. REQUIRES: something else closes a connection whose client acknowledges nothing.
 */
export async function confirmedByClient(socket: Socket): Promise<boolean> {
  const [local, remote] = [portSuffix(socket.localPort), portSuffix(socket.remotePort)]
  while (!socket.destroyed) {
    // Also waits for clients of other addresses with the same port number, which is rare and harmless.
    const lines = (await nextTable()).filter((line) => line[1]?.endsWith(local) && line[2]?.endsWith(remote))
    if (lines.length === 0) return false
    if (lines.every(isConfirmed)) return !socket.destroyed
  }
  return false
}

let nextReading: Promise<string[][]> | undefined
let readingMs = 0

/**
 * The table as it is after the call. Downloads that are cut together share one reading. With 10,000 connections a
 * reading takes milliseconds; the pause between two is long enough that slow clients cannot keep the program busy with
 * it.
 */
function nextTable(): Promise<string[][]> {
  nextReading ??= delay(Math.max(LOOK_AGAIN_MS, PAUSE_PER_READING * readingMs)).then(async () => {
    nextReading = undefined
    const begunMs = performance.now()
    const table = await readTables()
    readingMs = performance.now() - begunMs
    return table
  })
  return nextReading
}

async function unconfirmed(port: number): Promise<{ readonly connections: number; readonly bytes: number }> {
  const suffix = portSuffix(port)
  const left = (await readTables()).filter(([, local = '', , state = '']) => {
    return local.endsWith(suffix) && UNCONFIRMED_STATES.has(state)
  })
  const bytes = left.reduce((sum, [, , , , queues = '']) => sum + Number.parseInt(queues, 16), 0)
  return { connections: left.length, bytes }
}

/** The port in the form in which the table appends it to an address. */
function portSuffix(port = 0): string {
  return `:${port.toString(16).toUpperCase().padStart(4, '0')}`
}

/** Whether its send queue, which precedes the receive queue, is empty. */
function isConfirmed([, , , , queues = '']: string[]): boolean {
  return Number.parseInt(queues, 16) === 0
}

async function readTables(): Promise<string[][]> {
  return (await Promise.all(['tcp', 'tcp6'].map(readTable))).flat()
}

/** The fields of each line: number, local address, remote address, state, bytes to send and to read. */
async function readTable(name: string): Promise<string[][]> {
  // A kernel without IPv6 has no tcp6.
  const text = await readFile(`/proc/self/net/${name}`, 'latin1').catch(() => '')
  return text
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/, 5))
}
