/** What an attack is, and what it has to work with. Attacks run in the attacker's own process. */
import type { AttackWire } from './attack-wire.ts'
import type { AttackingDevice } from './attacking-device.ts'
import type { Stand, StandKind, Target } from './stand.ts'
import type { StatedWait } from './verdict.ts'

/** "small" is for `npm test`: the same attack, in less than a second and with less of everything. */
export type Scale = 'full' | 'small'

export interface AttackScene {
  readonly stand: Stand
  readonly wire: AttackWire
  /** A device of the gateway's fleet that does what the attack says; it is called "evil". */
  readonly device: AttackingDevice
  readonly scale: Scale
  /** Aborts when the time of the attack is over; the wire's connections are then closed. */
  readonly over: AbortSignal
}

export interface Attack {
  readonly targets: readonly Target[]
  /** Default: plain. */
  readonly stand?: StandKind
  /** Makes what takes time to make, before the time of the attack begins. */
  readonly prepare?: (scale: Scale) => void
  /** A wait of others that the product documents. */
  readonly stated?: StatedWait
  /** Ends by itself, or when the scene is over; an import of a file may take some seconds more. */
  readonly run: (scene: AttackScene) => Promise<void>
}

/** By name. */
export type Attacks = Readonly<Record<string, Attack>>

export const BOTH: readonly Target[] = ['gateway', 'appliance']

/** What an attack took from the attacker. */
export interface Spending {
  readonly connections: number
  readonly sentBytes: number
  readonly receivedBytes: number
  readonly seconds: number
  readonly cpuSeconds: number
  /** Seconds in which an answer with packets was under way, of all connections together. */
  readonly streamSeconds: number
}

export function isOver(scene: AttackScene): boolean {
  return scene.over.aborted
}

/** Waits for so long, or until the attack is over. */
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

/** A request without a body. Fields are whole lines without their ends. */
export function get(path: string, fields: readonly string[] = []): string {
  return ['GET ', path, ' HTTP/1.1\r\nHost: x\r\n', ...fields.map((field) => `${field}\r\n`), '\r\n'].join('')
}

/** The same with the attacker's credentials. */
export function getAsUser(stand: Stand, path: string): string {
  return get(path, [`Authorization: ${stand.attacker}`])
}

/** Who is turned away comes back after so long. */
const AGAIN_MS = 20

/** So many connections, each with a request (the `n`-th of all) as soon as the one before is answered. */
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

/** Keeps so many connections open to the end, each begun with `first`; one that is closed is opened again. */
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
