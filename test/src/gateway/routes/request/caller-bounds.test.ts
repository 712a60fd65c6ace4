// What callers with bounds see and get in a fleet of "east" and "west".
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AUDIT_PAGE } from '../../../../../src/shared/contract/audit-answers.ts'
import { eventually } from '../../../../support/eventually.ts'
import { type HttpAnswer, httpGet, httpOpen } from '../../../../support/http-get.ts'
import { writeBigCapture } from '../../../../support/packets/big-capture.ts'
import { pause } from '../../../../support/pause.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../../../support/processes/small-fleet.ts'
import { startTempWorker } from '../../../../support/processes/temp-worker.ts'

const RANGE = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 1_000_000_000n}&TSUnit=nanos`
const DOWNLOAD = `/api/v1/pcap/timerange?${RANGE}`

describe('callers with bounds', () => {
  let fleet: SmallFleet
  before(async () => {
    fleet = await startSmallFleet([
      { name: 'eastern', role: 'full', devices: 'ea*' },
      { name: 'brief', role: 'full', spanMaxS: 2 },
      { name: 'single', role: 'user', streamsMax: 1 },
      { name: 'modest', role: 'user', bytesPerDay: 1_000 },
      { name: 'thrifty', role: 'user', bytesPerDay: 1_000_000 },
      { name: 'frugal', role: 'user', bytesPerDay: 10_000_000 },
    ])
  })
  after(() => fleet?.[Symbol.asyncDispose]())

  const ask = (path: string, user: string, method = 'GET'): Promise<HttpAnswer> =>
    httpGet(`${fleet.gateway.url}${path}`, { method, headers: fleet.gateway.basic(user) })
  const refusal = async (path: string, user: string, method = 'GET') => {
    const { status, json } = await ask(path, user, method)
    return [status, json().code]
  }

  describe('of devices', () => {
    test('find the others nowhere: not in lists, reports, metrics, and not in the texts of errors', async () => {
      for (const path of [
        '/v1/devices',
        '/stream/list',
        '/stream/list?Format=csv',
        '/metrics',
        '/v1/queue',
        `/v1/estimate?${RANGE}`,
        '/api/v1/system/version',
        '/sysmaster/capture_status',
        '/v1/devices/wes',
        '/devices/west/stream/list',
        `${DOWNLOAD}&Device=west`,
        `${DOWNLOAD}&Device=east,wes`,
        '/api/v1/pcap/single?StreamName=west-firs',
      ]) {
        const { body } = await ask(path, 'eastern')
        // The error may repeat the name that was requested.
        assert.doesNotMatch(body.toString().replaceAll(/"wes[^"]*"|wes(t-firs)?\b/g, ''), /west/, path)
      }
    })

    test('find their own actions in the audit log, and no devices outside their bounds', async () => {
      for (const user of ['full', 'eastern']) assert.equal((await ask(DOWNLOAD, user)).status, 200)
      const listed = async (user: string) =>
        AUDIT_PAGE.parse((await ask('/v1/audit?Event=download', user)).json()).entries
      assert.ok(
        (await listed('full')).some(
          ({ user, devices }) => user === 'full' && String(devices) === 'east,west',
        ),
      )
      const own = await listed('eastern')
      assert.ok(own.length >= 2)
      for (const { user, devices } of own) assert.deepEqual([user, devices], ['eastern', ['east']])
    })

    test('cannot reach the others by any path', async () => {
      for (const path of [
        '/v1/devices/west',
        '/devices/west/stream/list',
        `/devices/west${DOWNLOAD}`,
        '/devices/west/anything/else',
        `${DOWNLOAD}&Device=west`,
        `${DOWNLOAD}&Device=w*`,
        `/v1/estimate?${RANGE}&Device=west`,
        '/stream/list?Device=west',
        '/sysmaster/capture_stop?Device=west',
      ])
        assert.deepEqual(await refusal(path, 'eastern'), [404, 'unknown-device'], path)
      assert.deepEqual(await refusal('/api/v1/pcap/single?StreamName=west-first', 'eastern'), [
        404,
        'unknown-capture',
      ])
      assert.deepEqual(await refusal('/pcap/del?StreamName=west-first', 'eastern'), [404, 'unknown-capture'])
      assert.deepEqual(await refusal(`/v1/exports?${RANGE}&Device=west`, 'eastern', 'POST'), [
        404,
        'unknown-device',
      ])
    })

    test('get from all of theirs what the whole fleet would give of them', async () => {
      const theirs = await ask(DOWNLOAD, 'eastern')
      const all = await ask(`${DOWNLOAD}&Device=east`, 'full')
      assert.equal(theirs.status, 200)
      assert.deepEqual(theirs.body, all.body)
      assert.equal((await ask('/stream/list', 'eastern')).json().Unreachable?.toString(), '')
    })

    test('see what others made of their devices alone, and nothing that has more', async () => {
      const id = async (path: string) => String((await ask(path, 'full')).headers['capfleet-request-id'])
      const [both, east] = [await id(DOWNLOAD), await id(`${DOWNLOAD}&Device=east`)]
      assert.equal((await ask(`/v1/requests/${both}`, 'full')).status, 200)
      assert.equal((await ask(`/v1/requests/${east}`, 'eastern')).status, 200)
      assert.deepEqual(await refusal(`/v1/requests/${both}`, 'eastern'), [404, 'unknown-request'])

      const order = async (query: string) =>
        String((await ask(`/v1/exports?${query}`, 'full', 'POST')).json().id)
      const [whole, part] = [await order(RANGE), await order(`${RANGE}&Device=east`)]
      const listed = (await ask('/v1/exports', 'eastern')).json().exports as readonly {
        readonly id: string
      }[]
      assert.deepEqual(
        listed.map((one) => one.id),
        [part],
      )
      for (const path of ['', '/manifest', '/file', '/events'])
        assert.deepEqual(await refusal(`/v1/exports/${whole}${path}`, 'eastern'), [404, 'unknown-export'])
      assert.equal((await ask(`/v1/exports/${part}`, 'eastern')).status, 200)
      for (const export_ of [whole, part]) await ask(`/v1/exports/${export_}`, 'full', 'DELETE')

      const schedule = `/v1/schedules?Cron=${encodeURIComponent('0 3 1 1 *')}&TSBegin=-1h&TSEnd=now`
      const made = await ask(schedule, 'full', 'POST')
      const { id: scheduleId } = made.json()
      assert.equal(made.status, 201)
      assert.deepEqual((await ask('/v1/schedules', 'eastern')).json().schedules, [])
      assert.deepEqual(await refusal(`/v1/schedules/${scheduleId}`, 'eastern'), [404, 'unknown-schedule'])
      assert.equal((await ask(schedule, 'eastern', 'POST')).status, 201)
      assert.equal(((await ask('/v1/schedules', 'full')).json().schedules as unknown[]).length, 2)
    })
  })

  test('of a span get no longer range, nor one whose length is not known', async () => {
    assert.equal((await ask(DOWNLOAD, 'brief')).status, 200)
    const longer = RANGE.replace(String(SMALL_FLEET_START_NS), String(SMALL_FLEET_START_NS - 1_500_000_000n))
    for (const [path, method] of [
      [`/api/v1/pcap/timerange?${longer}`],
      [`/devices/east/api/v1/pcap/timerange?${longer}`],
      ['/devices/east/api/v1/pcap/timerange?TSBegin=20261101_000000&TSEnd=20261101_000001'],
      ['/api/v1/pcap/single?StreamName=east-first'],
      [`/devices/east/api/v1/pcap/timerange?${longer}&Follow=1`],
      [`/v1/estimate?${longer}`],
      [`/devices/east/api/v1/pcap/estimate?${longer}`],
      [`/v1/exports?${longer}`, 'POST'],
      [`/v1/schedules?Cron=${encodeURIComponent('0 3 1 1 *')}&TSBegin=-1h&TSEnd=now`, 'POST'],
    ] as const)
      assert.deepEqual(await refusal(path, 'brief', method), [403, 'out-of-bounds'], path)
  })

  test('of one stream wait for its end, however it comes', async () => {
    const path = `${fleet.appliances[0]?.folder}/big.pcap`
    await writeBigCapture(path)
    await fleet.appliances[0]?.importFiles('big', path)
    const single = `${fleet.gateway.url}/devices/east/api/v1/pcap/single?StreamName=big`
    const running = await httpOpen(single, { headers: fleet.gateway.basic('single') })
    assert.equal(running.response.statusCode, 200)
    assert.deepEqual(await refusal(DOWNLOAD, 'single'), [429, 'stream-quota'])
    assert.equal((await ask(DOWNLOAD, 'user')).status, 200)
    running[Symbol.dispose]()
    await eventually(async () => (await ask(DOWNLOAD, 'single')).status === 200, {
      message: 'the place is free again',
    })
  })

  test('of bytes in a day get no more once they are used up, and are cut while they go beyond', async () => {
    assert.equal((await ask(DOWNLOAD, 'modest')).status, 200)
    await eventually(async () => (await ask(DOWNLOAD, 'modest')).status === 429, {
      message: 'what was sent is told',
    })
    const refused = await ask(DOWNLOAD, 'modest')
    assert.equal(refused.json().code, 'byte-quota')
    assert.ok(Number(refused.headers['retry-after']) <= 86_400)
    assert.deepEqual(await refusal(`/v1/exports?${RANGE}`, 'modest', 'POST'), [429, 'byte-quota'])

    const big = `${fleet.gateway.url}/devices/east/api/v1/pcap/single?StreamName=big`
    using running = await httpOpen(big, { headers: fleet.gateway.basic('frugal') })
    let bytes = 0
    const cut = new Promise<void>((resolve) => running.response.once('close', resolve))
    running.response.on('data', (piece: Buffer) => {
      bytes += piece.length
      running.response.pause()
      void pause(5, 'a slow reader').then(() => running.response.resume())
    })
    await cut
    assert.equal(running.response.complete, false)
    assert.ok(bytes < 64_000_000, `${bytes} bytes`)
    const id = String(running.response.headers['capfleet-request-id'])
    const receipt = (await ask(`/v1/requests/${id}`, 'frugal')).json()
    assert.deepEqual([receipt.status, (receipt.error as { code: string }).code], ['failed', 'byte-quota'])
  })

  test('have their exports counted as they are written, and failed beyond', async () => {
    await using _worker = await startTempWorker(fleet.gateway)
    const { id } = (await ask('/v1/exports?StreamName=big&Device=east', 'thrifty', 'POST')).json()
    await ask(`/v1/exports/${id}/events`, 'thrifty')
    const { state, error } = (await ask(`/v1/exports/${id}`, 'thrifty')).json()
    assert.deepEqual([state, (error as { code: string }).code], ['failed', 'byte-quota'])
  })
})
