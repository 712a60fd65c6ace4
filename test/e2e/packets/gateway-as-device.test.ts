// Below /devices/{device}, and at the root for one device, a gateway answers like the device itself: heads and errors
// of downloads, values of TSMode, the zone of local times, ignored parameters. Over real appliances.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { addAgedOut } from '../../../appliance/store/aged-out-list.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { type HttpAnswer, httpGet } from '../../support/http-get.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

/** 2026-11-20 00:30 in UTC, 09:30 in Tokyo. */
const START_NS = 1_795_134_600_000_000_000n
const GONE = 'gone_20261101_1000'
const ABOUT = ['content-type', 'content-disposition', 'capfleet-order', 'capfleet-ts-unit', 'cache-control']

describe('a gateway in front of a device', () => {
  const owner = new AsyncDisposableStack()
  let tokyo: TempAppliance
  let gateway: TempGateway

  before(async () => {
    const redis = owner.use(await TempRedis.create())
    tokyo = owner.use(
      await startTempAppliance({
        config: {
          deviceName: 'tokyo',
          timeZone: 'Asia/Tokyo',
          tsModeAliases: { footer: 'vendorA7130', same: 'nic' },
        },
      }),
    )
    const other = owner.use(await startTempAppliance())
    await addAgedOut(storePaths(tokyo.storePath), { name: GONE, startNs: 5n, endNs: 9n })
    const path = join(tokyo.folder, 'one.pcap')
    await writeFile(path, makePcap([0n, 1n, 2n].map((at) => makePacket(START_NS + at, `packet ${at}`, 80))))
    await tokyo.importFiles('lab_20261120_0930', path)
    process.env.TEST_APPLIANCE_PASSWORD = tokyo.credentials('full').split(':')[1]
    const devices = [tokyo, other].map(({ url }, index) => ({
      name: ['tokyo', 'other'][index],
      url,
      user: 'full',
      password: { env: 'TEST_APPLIANCE_PASSWORD' },
    }))
    gateway = owner.use(
      await startTempGateway([], redis.url, { devices, tsModeAliases: { foot: 'vendorA7130' } }),
    )
  })
  after(() => owner.disposeAsync())

  const ask = (path: string, method = 'GET'): Promise<HttpAnswer> =>
    httpGet(gateway.url + path, { method, headers: gateway.as.user })

  for (const [path, status] of [
    ['/api/v1/pcap/single?StreamName=lab', 200],
    ['/pcap/single?StreamName=lab&Compression=fast', 200],
    [`/api/v1/pcap/splittime?StreamName=lab&Start=${START_NS}&Stop=${START_NS + 2n}`, 200],
    [`/api/v1/pcap/timerange?TSBegin=${START_NS}&TSEnd=${START_NS + 2n}&TSUnit=nanos`, 200],
    ['/api/v1/pcap/single?StreamName=nope', 404],
    [`/api/v1/pcap/single?StreamName=${GONE}`, 410],
    [`/pcap/splittime?StreamName=${GONE}&Start=5&Stop=9`, 410],
    ['/api/v1/pcap/timerange?TSBegin=5&TSEnd=9&TSUnit=nanos', 410],
    ['/api/v1/pcap/single?StreamName=lab&FilterBPF=no+filter', 400],
    ['/api/v1/pcap/single?StreamName=lab&FilterRE=%28', 400],
    ['/api/v1/pcap/single?StreamName=lab&Slice=0', 400],
  ] as const) {
    test(`GET and HEAD of ${path}: ${status} everywhere`, async () => {
      const [own, ownHead] = [await tokyo.get(path), await tokyo.get(path, { method: 'HEAD' })]
      assert.deepEqual([own.status, ownHead.status], [status, status])
      for (const through of [`/devices/tokyo${path}`, `${path}&Device=tokyo`]) {
        const [whole, head] = [await ask(through), await ask(through, 'HEAD')]
        assert.deepEqual([whole.status, head.status], [status, status], through)
        assert.equal(head.body.length, 0)
        if (status !== 200) {
          assert.equal(whole.json().code, own.json().code)
          continue
        }
        assert.ok(whole.body.equals(own.body))
        for (const name of ABOUT) {
          assert.equal(whole.headers[name], own.headers[name], `${through}: ${name} of GET`)
          assert.equal(head.headers[name], own.headers[name], `${through}: ${name} of HEAD`)
        }
        assert.equal(head.headers['capfleet-devices'], 'tokyo')
      }
    })
  }

  test('a capture that has aged out is so for the fleet, too', async () => {
    const answer = await ask(`/api/v1/pcap/single?StreamName=${GONE}`)
    assert.equal(answer.status, 410)
    assert.match(String(answer.json().detail), /it held packets from 5 to 9 ns/)
    assert.equal((await ask(`/api/v1/pcap/single?StreamName=${GONE}&Device=other`)).status, 404)
  })

  test('TSMode may be an alias of the device below it, and of the gateway at the root', async () => {
    const single = '/api/v1/pcap/single?StreamName=lab&TSMode='
    for (const [path, status] of [
      [`/devices/tokyo${single}footer`, 200],
      [`/devices/tokyo${single}same`, 200],
      [`/devices/tokyo${single}foot`, 400],
      [`${single}foot`, 200],
      [`${single}footer`, 400],
    ] as const) {
      const answer = await ask(path)
      assert.equal(answer.status, status, path)
      assert.equal((await ask(path, 'HEAD')).status, status, path)
      if (status === 400) assert.equal(answer.json().param, 'TSMode')
    }
    const own = await tokyo.get(`${single}nope`)
    assert.equal((await ask(`/devices/tokyo${single}nope`)).json().detail, own.json().detail)
  })

  test('local times are read in the zone that the answer names', async () => {
    const range = 'TSBegin=20261120_093000&TSEnd=20261120_093001'
    const path = `/api/v1/pcap/timerange?${range}`
    const packets = async (asked: string, zone: string | undefined) => {
      const { status, headers, body } = await ask(asked)
      assert.deepEqual([status, headers['capfleet-time-zone']], [200, zone], asked)
      return (body.length - 24) / (16 + 80)
    }
    assert.equal((await tokyo.get(path)).headers['capfleet-time-zone'], 'Asia/Tokyo')
    assert.equal(await packets(`/devices/tokyo${path}`, 'Asia/Tokyo'), 3)
    assert.equal(await packets(`${path}&Device=tokyo`, 'UTC'), 0)
    assert.equal(await packets(`${path}&Device=tokyo&TSZone=Tokyo`, undefined), 3)
    const estimate = await ask(`/devices/tokyo/api/v1/pcap/estimate?${range}`)
    assert.deepEqual([estimate.headers['capfleet-time-zone'], estimate.json().Packets], ['Asia/Tokyo', '3'])
  })

  test('parameters that the device does not know are named on every way', async () => {
    for (const path of [
      '/api/v1/system/version?foo=1&b%C3%A9=2',
      '/sysmaster/stats_summary?foo=1&b%C3%A9=2',
      '/stream/ssize?StreamName=lab_20261120_0930&foo=1&b%C3%A9=2',
      '/api/v1/pcap/single?StreamName=lab&foo=1&b%C3%A9=2',
    ]) {
      for (const through of [`/devices/tokyo${path}`, `${path}&Device=tokyo`]) {
        const answer = await ask(through)
        assert.deepEqual([answer.status, answer.headers['capfleet-ignored']], [200, 'foo, b%C3%A9'], through)
      }
    }
  })
})
