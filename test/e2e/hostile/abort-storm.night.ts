/**
 * Clients that break off, many at a time and at every point: afterwards no stream, lease or socket is left, and (in the
 * long run) no memory.
 *
 *   ABORTS=<n>   number of clients (1,000 in npm test; 10,000 is the long run, which also measures memory)
 *   SEED=<n>     repeats the choice of clients
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ABORT_PHASES, abortedRequest } from '../../support/clients/abort-client.ts'
import { connectTo } from '../../support/clients/raw-client.ts'
import { simulatedRange } from '../../support/devices/simulated-capture.ts'
import { eventually } from '../../support/eventually.ts'
import { leaseKeys } from '../../support/lease/lease-dump.ts'
import { type SimulatedStage, stageName, startSimulatedStage } from '../../support/live/simulated-stage.ts'
import { pause } from '../../support/pause.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const ABORTS = Number(process.env.ABORTS ?? 1_000)
const MEASURES_MEMORY = ABORTS >= 10_000
/** Until then pools, caches, compiled code and the heap grow; memory levels off after some 8,000 clients. */
const WARM_UP = MEASURES_MEMORY ? 8_000 : 200
const AT_ONCE = 64
const DEVICES = 4
const TOLERANCE = 1.05
/** Connections to devices that are kept for the next call: two per device. */
const KEPT_FDS = 8
const PACE = { packets: 401, packetsPerTick: 50, tickMs: 4 }

describe('a storm of clients that break off', { timeout: TEST_LIMIT_MS + ABORTS * 60 }, () => {
  test(`${ABORTS} of them leave nothing over`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    await using stage = await startSimulatedStage({ groups: 1, devicesPerGroup: DEVICES, pace: PACE })
    await storm(stage, WARM_UP, random)
    const before = await quietUsage(stage)
    await storm(stage, ABORTS, random)
    const limit = { fds: before.fds * TOLERANCE + KEPT_FDS, rssBytes: before.rssBytes * TOLERANCE }
    await eventually(async () => !exceeds(await stage.gateway.usage(), limit), {
      message: `as few as before, which was ${JSON.stringify(before)}`,
    }).catch(async (cause) => {
      throw new Error(`now it is ${JSON.stringify(await stage.gateway.usage())}`, { cause })
    })
    const after = await quietUsage(stage)
    t.diagnostic(`${JSON.stringify(before)} before, ${JSON.stringify(after)} after`)
    assert.equal(await stage.gateway.death(), undefined)
    for (const device of stage.groups.flat()) assert.deepEqual(device.fifths, [])
  })

  test('negative control: connections that stay are seen', async () => {
    await using stage = await startSimulatedStage({ groups: 1, devicesPerGroup: 1, pace: PACE })
    const before = await quietUsage(stage)
    const sockets = await Promise.all(Array.from({ length: 40 }, () => connectTo(stage.gateway.url)))
    const limit = { fds: before.fds * TOLERANCE + KEPT_FDS, rssBytes: Infinity }
    await eventually(async () => exceeds(await stage.gateway.usage(), limit), {
      message: 'forty sockets more are seen',
    })
    for (const socket of sockets) socket.destroy()
  })
})

interface Usage {
  readonly fds: number
  readonly rssBytes: number
}

function exceeds(now: Usage, limit: Usage): boolean {
  return now.fds > limit.fds || (MEASURES_MEMORY && now.rssBytes > limit.rssBytes)
}

async function storm({ gateway }: SimulatedStage, count: number, random: SeededRandom): Promise<void> {
  let left = count
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      await abortedRequest(gateway.url, randomPath(random), { phase: random.pick(ABORT_PHASES), random })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
}

function randomPath(random: SeededRandom): string {
  const query = `${simulatedRange(random.pick([20, 100, 400]))}&Wait=20`
  const compression = random.pick(['', '', '&Compression=fast', '&Compression=zstd'])
  const device = random.integer(0, DEVICES - 1)
  if (random.integer(1, 3) > 1) return `/devices/${stageName(0, device)}/api/v1/pcap/timerange?${query}`
  return `/api/v1/pcap/timerange?Device=${stageName(0, device)},${stageName(0, (device + 1) % DEVICES)}&${query}${compression}`
}

/** The state when nothing runs any more: no reader on a device, no lease in Redis. */
async function quietUsage({ gateway, groups, redis }: SimulatedStage): Promise<Usage> {
  const isQuiet = async (): Promise<boolean> => {
    if (groups.flat().some(({ readers }) => readers > 0)) return false
    return leaseKeys(await redis.leftovers('capfleet'), 'capfleet').length === 0
  }
  await eventually(isQuiet, { message: 'no stream and no lease is left' })
  if (MEASURES_MEMORY) await pause(3_000, 'memory that is free goes back to the system')
  return gateway.usage()
}
