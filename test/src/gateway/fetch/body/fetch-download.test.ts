// A worker may get a download before it has probed the device: nothing is requested until the device's kind is known.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Device } from '../../../../../src/gateway/device/device.ts'
import { DeviceClient } from '../../../../../src/gateway/device/device-client.ts'
import {
  FetchedDownload,
  type FetchParts,
  type FetchRequest,
} from '../../../../../src/gateway/fetch/body/fetch-download.ts'
import { planDownload } from '../../../../../src/gateway/fleet/plan/plan.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import { createLog } from '../../../../../src/shared/base/log.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'
import { API_CAPTURE, ApiDevice } from '../../../../support/devices/api-device.ts'
import { readPcap } from '../../../../support/packets/pcap-records.ts'

const NEVER = new AbortController().signal

test('a device that is probed only then is asked for what its kind knows', async () => {
  await using parts = new AsyncDisposableStack()
  const foreign = parts.use(await ApiDevice.start('foreign', 50))
  const { name, url, user } = foreign.config
  const limits = { connectTimeoutMs: 20_000, idleTimeoutMs: 20_000 }
  const client = new DeviceClient(
    new Device({ name, url, user, password: new Secret(foreign.password) }),
    limits,
  )
  parts.defer(() => client.close())
  let kind: 'api' | undefined
  const fleet = {
    knowKinds: async () => {
      kind = 'api'
    },
    kindOf: () => kind,
    ignoredBy: () => undefined,
    fetchCompressionOf: () => undefined,
    get: () => ({
      client,
      health: { report: {} },
      breaker: { run: (work: () => unknown) => work(), check: () => undefined, outages: 0 },
    }),
    clockOf: () => undefined,
  }
  const lease = {
    user: 'ann',
    waitedMs: 0,
    lost: NEVER,
    opened: () => undefined,
    reopening: () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
  const text = `StreamName=${API_CAPTURE}&MaxPackets=5&TSMax=3600000000000`
  const query = parseDownloadQuery('single', parseQueryString(text), { zone: 'UTC', nowNs: 0n })
  await using fetched = await FetchedDownload.open(
    planDownload(withinBounds(query, UNBOUNDED), [name], 1),
    {
      leases: { acquire: async () => lease, use: async () => [] },
      fleet,
      startTimeoutMs: 20_000,
      retryPauseMs: 10,
      log: createLog('test', 'silent'),
    } as unknown as FetchParts,
    {
      waitMs: 1_000,
      signal: NEVER,
      onWaited: () => undefined,
      options: { onError: 'fail', align: false },
      onLost: () => undefined,
    } as unknown as FetchRequest,
  )
  const pieces: Buffer[] = []
  for await (const chunk of fetched.body.chunks) pieces.push(Buffer.from(chunk))
  assert.equal(readPcap(Buffer.concat(pieces)).records.length, 5)
  assert.deepEqual(
    foreign.asked.map((target) => /MaxPackets|TSMax/.test(target)),
    [false],
  )
})
