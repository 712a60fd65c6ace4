/** A merge of three devices, one of which loses power in the middle and comes back. */
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { simulatedRange } from '../devices/simulated-capture.ts'
import type { SimulatedDevice } from '../devices/simulated-device.ts'
import { GATEWAY_AUTHORIZATION } from '../processes/gateway-process.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { type SimulatedStage, stageName, startSimulatedStage } from './simulated-stage.ts'

export const RESTART_DEVICES = 3
export const RESTART_PACKETS = 1_500
/** A stream of 1,500 packets lasts more than half a second. */
const PACE = { packets: RESTART_PACKETS + 1, packetsPerTick: 25, tickMs: 10 }

/** Groups of three devices each, so that several rounds run concurrently. */
export function startRestartStage(groups: number): Promise<SimulatedStage> {
  return startSimulatedStage({ groups, devicesPerGroup: RESTART_DEVICES, pace: PACE })
}

const LATEST_MS = 700
const DARK_MS = 900

/** The SHA-256 of what the client received, or its error. `whileDark` is called while the power is off. */
export async function restartRound(
  { gateway, groups }: SimulatedStage,
  group: number,
  options: { readonly random: SeededRandom; readonly whileDark?: (device: SimulatedDevice) => void },
): Promise<string> {
  const names = Array.from({ length: RESTART_DEVICES }, (_, index) => stageName(group, index)).join()
  const { random, whileDark } = options
  const victim = random.pick(groups[group] ?? [])
  const [afterMs, darkMs] = [random.integer(0, LATEST_MS), random.integer(0, DARK_MS)]
  const answer = await fetch(
    `${gateway.url}/api/v1/pcap/timerange?Device=${names}&${simulatedRange(RESTART_PACKETS)}&Wait=55`,
    { headers: { authorization: GATEWAY_AUTHORIZATION } },
  )
  if (answer.status !== 200) return `${answer.status} ${await answer.text()}`
  const got = digestOf(answer)
  await delay(afterMs)
  await victim.powerOff()
  whileDark?.(victim)
  await delay(darkMs)
  await victim.powerOn()
  return got
}

async function digestOf(answer: Response): Promise<string> {
  const hash = createHash('sha256')
  try {
    for await (const chunk of answer.body ?? []) hash.update(chunk)
    return hash.digest('hex')
  } catch (error) {
    return `cut: ${String((error as Error).cause ?? error)}`
  }
}
