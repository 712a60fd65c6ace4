// Follow=1 through the gateway: a quiet device is not treated as broken, and packets that devices have removed are
// reported.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { StoreKeeper } from '../../support/disks/store-keeper.ts'
import { httpGet, httpOpen } from '../../support/http-get.ts'
import { ScriptedDriver } from '../../support/live/scripted-driver.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { pause } from '../../support/pause.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

const START_NS = 1_700_000_000_000_000_000n
const at = (i: number): bigint => START_NS + BigInt(i) * 1_000_000n
const packets = (count: number) => Array.from({ length: count }, (_, i) => makePacket(at(i), `${i}`, 60_000))
/** More than a healthy device takes on a busy machine. */
const IDLE_MS = 3_000

const owner = new AsyncDisposableStack()
let driver: ScriptedDriver
let gateway: TempGateway
let trimmed: TempAppliance

before(async () => {
  const redis = owner.use(await TempRedis.create())
  driver = owner.use(await ScriptedDriver.make([packets(40)], 700_000))
  const live = owner.use(await startTempAppliance({ driver }))
  await live.recorder.startCapture('live')
  trimmed = owner.use(await startTempAppliance({ segmentBytes: 130_000 }))
  const file = join(trimmed.folder, 'a.pcap')
  await writeFile(file, makePcap(packets(10)))
  await trimmed.importFiles('a', file)
  process.env.TEST_APPLIANCE_PASSWORD = live.credentials('full').split(':')[1]
  const devices = [live, trimmed].map(({ url }, i) => ({
    name: ['live', 'trimmed'][i],
    url,
    user: 'full',
    password: { env: 'TEST_APPLIANCE_PASSWORD' },
  }))
  const downloads = { idleTimeoutMs: IDLE_MS }
  gateway = owner.use(await startTempGateway([], redis.url, { devices, downloads }))
})
after(() => owner.disposeAsync())

const RANGE = `/api/v1/pcap/timerange?TSBegin=${at(0)}&TSEnd=${at(30)}`

test('a followed device may be quiet for longer than the idle time-out', async () => {
  await driver.flushUntil(at(4))
  const headers = { ...gateway.as.user, te: 'trailers' }
  const { response } = await httpOpen(`${gateway.url}/devices/live${RANGE}&Follow=1`, { headers })
  const body = buffer(response)
  await pause(2 * IDLE_MS, 'the time-out passes')
  await driver.flushUntil(at(40))
  assert.equal(readPcap(await body).records.length, 30)
  assert.equal(response.trailers['capfleet-complete'], '1')
  assert.equal(response.trailers['capfleet-packets'], '30')
})

test('several devices cannot be followed at once', async () => {
  const answer = await httpGet(`${gateway.url}${RANGE}&Follow=1`, { headers: gateway.as.user })
  assert.deepEqual([answer.status, answer.json().code, answer.json().param], [400, 'bad-parameter', 'Follow'])
})

test('a relay and a merge report what a device has removed', async () => {
  await trimmed.stopRecorder()
  {
    const settings = { maxBytes: 400_000 }
    await using keeper = await StoreKeeper.open({ storePath: trimmed.storePath, settings })
    assert.ok(keeper.kinds().includes('segment-removed'))
  }
  const of = async (path: string) => await httpGet(gateway.url + path, { headers: gateway.as.user })
  const relayed = await of(`/devices/trimmed${RANGE}`)
  const before = String(relayed.headers['capfleet-aged-out-before'])
  assert.match(before, /^\d{19}$/)
  const merged = await of(RANGE)
  assert.deepEqual([merged.status, merged.headers['capfleet-aged-out-before']], [200, before])
  const gone = `/api/v1/pcap/timerange?TSBegin=${at(0)}&TSEnd=${at(1)}`
  assert.equal((await of(gone)).status, 410)
  const partial = await of(`${gone}&OnError=partial`)
  assert.deepEqual([partial.status, readPcap(partial.body).records.length], [200, 1])
})
