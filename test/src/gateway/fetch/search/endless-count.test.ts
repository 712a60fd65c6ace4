// Searches at third-party devices whose answers have no end.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openDeviceSearch } from '../../../../../src/gateway/fetch/search/device-search.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import { seenQuestion } from '../../../../../src/gateway/fleet/questions/seen-question.ts'
import { gatewayConfigSchema } from '../../../../../src/gateway/gateway-config.ts'
import { buildParts, type OwnedParts } from '../../../../../src/gateway/parts.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import { Metrics } from '../../../../../src/shared/base/metrics.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { API_BEGIN_NS, API_STEP_NS, ApiDevice } from '../../../../support/devices/api-device.ts'
import { ethernet, ipv4, PROTOCOL, TYPE, udp } from '../../../../support/packets/packet-layers.ts'
import { settleFresh, TempRedis } from '../../../../support/processes/temp-redis.ts'
import { searchedLog, USER_PASSWORD } from '../../../../support/suite-secrets.ts'
import { writeUsers } from '../../../../support/suite-users.ts'
import { tempFolder } from '../../../../support/temp-folder.ts'

const PACKETS = 100
const MIB = 1_048_576n
/** From 10.0.0.1 to 10.0.1.2. */
const FRAME = ethernet(TYPE.ipv4, ipv4(PROTOCOL.udp, udp(1, 2, Buffer.alloc(64))))

describe('a count of packets that never end', () => {
  const owned = new AsyncDisposableStack()
  let foreign: ApiDevice
  let gateway: OwnedParts

  before(async () => {
    foreign = owned.use(
      await ApiDevice.start(
        'foreign',
        Array.from({ length: PACKETS }, (_, index) => ({
          ns: API_BEGIN_NS + BigInt(index) * API_STEP_NS,
          originalLength: FRAME.length,
          captured: FRAME,
        })),
      ),
    )
    process.env.FAKE_DEVICE_PASSWORD = foreign.password
    const redis = owned.use(await TempRedis.create())
    const folder = owned.use(await tempFolder()).path
    const users = join(folder, 'users.yaml')
    await writeUsers(users, [{ name: 'user', role: 'user' }], USER_PASSWORD)
    const config = gatewayConfigSchema.parse({
      listen: { port: 0 },
      home: join(folder, 'home'),
      redis: { url: redis.url },
      devices: [foreign.config],
      auth: { users },
      downloads: { startTimeoutMs: 120_000, idleTimeoutMs: 120_000 },
      timeZone: 'UTC',
    })
    await settleFresh(redis.url, config.redis.keyPrefix)
    const context = { configPath: join(folder, 'gateway.yaml'), log: searchedLog(), metrics: new Metrics() }
    gateway = owned.use(await buildParts(config, { ...context, signal: new AbortController().signal }))
  })
  after(() => owned.disposeAsync())

  const limit = new AbortController()
  /** The last part of the answer. */
  async function count(verifyBytesMax: bigint) {
    const given = new Map(
      Object.entries({ TSBegin: String(API_BEGIN_NS), TSEnd: String(API_BEGIN_NS + 3_600_000_000_000n) }),
    )
    const range = parseDownloadQuery('timerange', given, { zone: 'UTC', nowNs: 0n })
    const options = { addresses: '10.0.0.1', verify: true, verifyBytesMax }
    const question = seenQuestion(withinBounds(range, UNBOUNDED), options)
    const { fleet, seen } = gateway.parts
    const request = { user: 'ann', leaseId: 'x', waitMs: 60_000, signal: new AbortController().signal }
    await using search = await openDeviceSearch(
      fleet.get('foreign'),
      question,
      { ...seen, answerLimit: () => limit.signal },
      request,
    )
    let last: readonly object[] = []
    for await (const lines of search.lines()) last = lines
    return last as readonly {
      readonly packets?: string
      readonly spans?: readonly object[]
      complete?: boolean
    }[]
  }
  const isFree = async () => {
    await foreign.until(() => foreign.running === 0)
    const [use] = await gateway.parts.seen.leases.use(['foreign'])
    assert.equal(use?.used, 0)
  }

  test('packets for ever: it ends at VerifyBytesMax, says that there are more, and frees the stream', async () => {
    foreign.behaviour = { endless: 'packets' }
    const [found, end] = await count(8n * MIB)
    const bytes = Number(found?.packets) * (16 + FRAME.length)
    assert.ok(bytes >= Number(8n * MIB) && bytes < Number(9n * MIB), `${bytes}`)
    assert.deepEqual([found?.spans?.length, end?.complete], [1, false])
    await isFree()
  })

  test('a byte now and then: it ends at its limit, says that there may be more, and frees the stream', async () => {
    foreign.behaviour = { endless: 'bytes' }
    foreign.endlessBytes = 0
    const counted = count(8n * MIB)
    await foreign.until(() => foreign.endlessBytes > 3)
    assert.equal(foreign.running, 1)
    limit.abort()
    const [found, end] = await counted
    assert.ok(Number(found?.packets) <= PACKETS)
    assert.deepEqual([found?.spans?.length, end?.complete], [1, false])
    await isFree()
  })
})
