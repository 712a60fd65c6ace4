// Answers in lines of devices that never end them.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openDeviceCount } from '../../../../../src/gateway/fetch/lines/device-count.ts'
import type { LineParts, LineRequest } from '../../../../../src/gateway/fetch/lines/line-answer.ts'
import { openDeviceSearch } from '../../../../../src/gateway/fetch/search/device-search.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import { seenQuestion } from '../../../../../src/gateway/fleet/questions/seen-question.ts'
import { gatewayConfigSchema } from '../../../../../src/gateway/gateway-config.ts'
import { buildParts, type OwnedParts } from '../../../../../src/gateway/parts.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import { Metrics } from '../../../../../src/shared/base/metrics.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { FLEET_BEGIN_NS, fleetPcap } from '../../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../../support/eventually.ts'
import { settleFresh, TempRedis } from '../../../../support/processes/temp-redis.ts'
import { searchedLog, USER_PASSWORD } from '../../../../support/suite-secrets.ts'
import { writeUsers } from '../../../../support/suite-users.ts'
import { tempFolder } from '../../../../support/temp-folder.ts'

const QUERY = withinBounds(
  parseDownloadQuery(
    'timerange',
    new Map(
      Object.entries({ TSBegin: String(FLEET_BEGIN_NS), TSEnd: String(FLEET_BEGIN_NS + 1_000_000_000n) }),
    ),
    { zone: 'UTC', nowNs: 0n },
  ),
  UNBOUNDED,
)
const COUNT_PROGRESS = { packets: '1', bytes: '100', checkedBytes: '1', rangeBytes: '2' }
const FOUND = { address: '10.0.0.1', spans: [{ fromNs: '1', toNs: '2' }] }

describe('a device that never ends its answer', () => {
  const owned = new AsyncDisposableStack()
  let device: FakeDevice
  let gateway: OwnedParts

  before(async () => {
    device = owned.use(await FakeDevice.start('d0', fleetPcap(0, 1)))
    process.env.FAKE_DEVICE_PASSWORD = device.password
    const redis = owned.use(await TempRedis.create())
    const folder = owned.use(await tempFolder()).path
    const users = join(folder, 'users.yaml')
    await writeUsers(users, [{ name: 'user', role: 'user' }], USER_PASSWORD)
    const config = gatewayConfigSchema.parse({
      listen: { port: 0 },
      home: join(folder, 'home'),
      redis: { url: redis.url },
      devices: [device.config],
      auth: { users },
      timeZone: 'UTC',
    })
    await settleFresh(redis.url, config.redis.keyPrefix)
    const context = { configPath: join(folder, 'gateway.yaml'), log: searchedLog(), metrics: new Metrics() }
    gateway = owned.use(await buildParts(config, { ...context, signal: new AbortController().signal }))
  })
  after(() => owned.disposeAsync())

  const member = () => gateway.parts.fleet.get('d0')
  const search = (verify: boolean) => (limited: LineParts, request: LineRequest) =>
    openDeviceSearch(
      member(),
      seenQuestion(QUERY, { addresses: '10.0.0.1', verify, verifyBytesMax: 1n }),
      { ...gateway.parts.seen, ...limited },
      request,
    )
  const WAYS = [
    {
      what: 'a count',
      path: '/api/v1/pcap/count',
      line: COUNT_PROGRESS,
      open: (limited: LineParts, request: LineRequest) =>
        openDeviceCount(member(), { query: QUERY, countBytesMax: 1n }, limited, request),
    },
    {
      what: 'a search that reads packets',
      path: '/api/v1/seen',
      line: { checkedBytes: '1' },
      open: search(true),
    },
    { what: 'a search', path: '/api/v1/seen', line: FOUND, open: search(false) },
  ]
  for (const { what, path, line, open } of WAYS)
    test(`${what} fails at its limit, what was said before stays, and its stream is free`, async () => {
      let answer: ServerResponse | undefined
      device.handlers.set(path, (res) => {
        answer = res
        res.write(`${JSON.stringify(line)}\n`)
      })
      const limit = new AbortController()
      const limited = { ...gateway.parts.counts, answerLimit: () => limit.signal }
      const signal = new AbortController().signal
      const source = await open(limited, { user: 'ann', leaseId: 'x', waitMs: 60_000, signal })
      const seen: object[] = []
      const read = (async () => {
        for await (const lines of source.lines()) {
          seen.push(...lines)
          // Progress never ends, but it is not silent.
          if (line !== FOUND) answer?.write(`${JSON.stringify(line)}\n`)
        }
      })()
      await eventually(() => seen.length > (line === FOUND ? 0 : 3), { message: 'lines have arrived' })
      limit.abort()
      await assert.rejects(read, {
        code: 'device-timeout',
        message: 'device d0 did not end its answer within 3600 s',
      })
      await source[Symbol.asyncDispose]()
      await eventually(() => answer?.destroyed === true, { message: 'the connection is closed' })
      const [use] = await gateway.parts.counts.leases.use(['d0'])
      assert.equal(use?.used, 0)
    })
})
