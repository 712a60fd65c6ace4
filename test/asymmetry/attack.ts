/** What an attack is, and the tools that it gets. Attacks run in the attacker's own process. */
import type { AttackWire } from './attack-wire.ts'
import type { AttackingDevice } from './attacking-device.ts'
import type { Stand, StandKind, Target } from './stand.ts'
import type { StatedWait } from './verdict.ts'

/** "small" is for `npm test`: the same attack in less than a second and with smaller amounts. */
export type Scale = 'full' | 'small'

export interface AttackScene {
  readonly stand: Stand
  readonly wire: AttackWire
  /** A device of the gateway's fleet that is controlled by the attack; its name is "evil". */
  readonly device: AttackingDevice
  readonly scale: Scale
  /** Aborts when the time of the attack is over; then the wire's connections are closed. */
  readonly over: AbortSignal
}

export interface Attack {
  readonly targets: readonly Target[]
  /** Default: plain. */
  readonly stand?: StandKind
  /** Prepares what takes long, before the time of the attack begins. */
  readonly prepare?: (scale: Scale) => void
  /** A wait of others that the product documents. */
  readonly stated?: StatedWait
  /** Ends on its own, or when the scene is over; importing a file may take some seconds longer. */
  readonly run: (scene: AttackScene) => Promise<void>
}

/** Attacks by name. */
export type Attacks = Readonly<Record<string, Attack>>

export const BOTH: readonly Target[] = ['gateway', 'appliance']

/** What an attack cost the attacker. */
export interface Spending {
  readonly connections: number
  readonly sentBytes: number
  readonly receivedBytes: number
  readonly seconds: number
  readonly cpuSeconds: number
  /** Seconds in which an answer with packets was in progress, summed over all connections. */
  readonly streamSeconds: number
}

export function isOver(scene: AttackScene): boolean {
  return scene.over.aborted
}

/** Waits this long, or until the attack is over. */
export function pause(scene: AttackScene, ms: number): Promise<void> {
  if (scene.over.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      scene.over.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    scene.over.addEventListener('abort', end)
  })
}

/** A request without a body. Fields are whole lines without line ends. */
export function get(path: string, fields: readonly string[] = []): string {
  return ['GET ', path, ' HTTP/1.1\r\nHost: x\r\n', ...fields.map((field) => `${field}\r\n`), '\r\n'].join('')
}

/** The same with the attacker's credentials. */
export function getAsUser(stand: Stand, path: string): string {
  return get(path, [`Authorization: ${stand.attacker}`])
}

/** A rejected attacker retries after this time. */
const AGAIN_MS = 20

/** Opens this many connections; each sends a request (the `n`-th of all) as soon as the previous one is answered. */
export async function askOverAndOver(
  scene: AttackScene,
  connections: number,
  request: (n: number) => string,
): Promise<void> {
  let n = 0
  const lane = async (): Promise<void> => {
    while (!isOver(scene)) {
      const connection = await scene.wire.connect()
      while (connection !== undefined && !isOver(scene)) {
        const answer = await connection.ask(request(n++))
        if (answer === undefined) break
      }
      connection?.close()
      await pause(scene, AGAIN_MS)
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
}

/** Keeps this many connections open to the end, each begun with `first`; a closed one is reopened. */
export async function holdConnections(
  scene: AttackScene,
  connections: number,
  first: (n: number) => string,
): Promise<void> {
  let n = 0
  const lane = async (): Promise<void> => {
    while (!isOver(scene)) {
      const connection = await scene.wire.connect()
      connection?.send(first(n++))
      await connection?.closed
      await pause(scene, AGAIN_MS * 5)
    }
  }
  await Promise.all(Array.from({ length: connections }, lane))
}
