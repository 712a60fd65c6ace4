/** The attacker and its device, in a separate process. */
import { setPriority } from 'node:os'
import type { Scale, Spending } from './attack.ts'
import { AttackWire } from './attack-wire.ts'
import { AttackingDevice } from './attacking-device.ts'
import { ATTACKS, HONEST_USES } from './attacks.ts'
import { answerQuestions } from './helper-process.ts'
import type { Stand } from './stand.ts'

export interface AttackOrder {
  /** A name in ATTACKS or HONEST_USES. */
  readonly name: string
  readonly stand: Stand
  readonly scale: Scale
  readonly limitMs: number
}

/** Sent when the attacker is ready. */
export interface AttackerFacts {
  readonly deviceUrl: string
}

/**
 * Lower priority: other users should be affected by the attack, not by the attacker's own use of a core. In the small
 * form, which has no figures, a delayed attack would be worse.
 */
const NICENESS = { full: 10, small: 0 } as const

const device = await AttackingDevice.start()

answerQuestions<AttackOrder, Spending>({ deviceUrl: device.url } satisfies AttackerFacts, attack)

async function attack({ name, stand, scale, limitMs }: AttackOrder): Promise<Spending> {
  const chosen = ATTACKS[name] ?? HONEST_USES[name]
  if (chosen === undefined) throw new Error(`there is no attack "${name}"`)
  setPriority(NICENESS[scale])
  chosen.prepare?.(scale)
  const wire = new AttackWire(stand.url)
  const time = new AbortController()
  time.signal.addEventListener('abort', () => wire.close())
  const limit = setTimeout(() => time.abort(), limitMs)
  const startMs = performance.now()
  const startCpu = process.cpuUsage()
  try {
    await chosen.run({ stand, wire, device, scale, over: time.signal })
  } finally {
    clearTimeout(limit)
    time.abort()
  }
  const seconds = (performance.now() - startMs) / 1_000
  const { user, system } = process.cpuUsage(startCpu)
  const overWire = await wire.spent()
  const ofDevice = device.calmDown()
  return {
    connections: overWire.connections + ofDevice.connections,
    sentBytes: overWire.sentBytes + ofDevice.sentBytes,
    receivedBytes: overWire.receivedBytes + ofDevice.receivedBytes,
    seconds,
    cpuSeconds: (user + system) / 1e6,
    streamSeconds: overWire.streamMs / 1_000,
  }
}
