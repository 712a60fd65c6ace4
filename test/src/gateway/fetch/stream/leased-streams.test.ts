// When the scheduler is told that all streams of a lease have begun. Before that, none of them proves a reader.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Device } from '../../../../../src/gateway/device/device.ts'
import { DeviceClient } from '../../../../../src/gateway/device/device-client.ts'
import {
  LeasedStreams,
  type StreamParts,
  type StreamRequest,
} from '../../../../../src/gateway/fetch/stream/leased-streams.ts'
import type { DownloadStep } from '../../../../../src/gateway/fleet/plan/plan.ts'
import { planDownload } from '../../../../../src/gateway/fleet/plan/plan.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import type { Lease } from '../../../../../src/gateway/lease/lease.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'
import { FLEET_RANGE, startFakeFleet } from '../../../../support/devices/fake-fleet.ts'

const NEVER = new AbortController().signal
const QUERY = parseDownloadQuery('timerange', parseQueryString(FLEET_RANGE), { zone: 'UTC', nowNs: 0n })

test('streams that are opened one by one are reported when the last one has begun', async () => {
  await using parts = new AsyncDisposableStack()
  const clients = new Map<string, DeviceClient>()
  for (const fake of await startFakeFleet(3, ['d0', 'd1'])) {
    parts.use(fake)
    const { name, url, user, password } = fake
    const limits = { connectTimeoutMs: 5_000, idleTimeoutMs: 5_000 }
    const client = new DeviceClient(new Device({ name, url, user, password: new Secret(password) }), limits)
    parts.defer(() => client.close())
    clients.set(name, client)
  }
  const told: string[] = []
  const lease = {
    user: 'ann',
    waitedMs: 0,
    opened: () => told.push('opened'),
    reopening: () => told.push('reopening'),
    [Symbol.asyncDispose]: async () => void told.push('given back'),
  } as unknown as Lease
  const fleet = {
    get: (device: string) => ({
      client: clients.get(device),
      breaker: { run: (work: () => unknown) => work() },
    }),
  }
  const leases = { acquire: async () => lease }
  const plan = planDownload(withinBounds(QUERY, UNBOUNDED), ['d0', 'd1'], 10)
  const request = { waitMs: 1_000, signal: NEVER, onWaited: () => undefined }
  const streams = await LeasedStreams.acquire(
    plan,
    { leases, fleet, startTimeoutMs: 5_000 } as unknown as StreamParts,
    request as unknown as StreamRequest,
  )
  // As for a parked download: its devices are asked again, one by one.
  await streams.reopen(plan.steps[1] as DownloadStep, NEVER)
  assert.deepEqual(told, ['reopening'])
  await streams.reopen(plan.steps[0] as DownloadStep, NEVER)
  assert.deepEqual(told, ['reopening', 'reopening', 'opened'])
  await streams.reopen(plan.steps[0] as DownloadStep, NEVER)
  assert.deepEqual(told.slice(3), ['reopening', 'opened'], 'one that breaks off later')
  await streams.openAnother(async () => told.push('opens'))
  assert.deepEqual(told.slice(5), ['reopening', 'opens', 'opened'], 'one that counts, after the packets')
  await streams[Symbol.asyncDispose]()
  assert.equal(told.at(-1), 'given back')
})
