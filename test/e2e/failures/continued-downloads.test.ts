// Downloads from appliances that resume after what was delivered: the file equals that of an undisturbed run.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import { type AddressInfo, createConnection, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { httpGet } from '../../support/http-get.ts'
import { type BigCapture, writeBigCapture } from '../../support/packets/big-capture.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const RANDOM = seededRandom()
const PACKETS = 6_000
const IS_LONG = process.env.CAPFLEET_LONG === '1'
/** Sizes beside those at the edges. */
const ROUNDS = IS_LONG ? 8 : 2
const MIB = 1_048_576

/** Forwards connections, and breaks the next one off after this many bytes of the answer. */
interface BreakingProxy extends AsyncDisposable {
  readonly port: number
  breakAfterBytes: number
  /** How many were broken off. */
  broken: number
  /** Number of answers. */
  passedBytes: number
}

async function startBreakingProxy(deviceUrl: string): Promise<BreakingProxy> {
  const { hostname, port } = new URL(deviceUrl)
  const server = createServer((client) => {
    const device = createConnection(Number(port), hostname)
    let bytes = 0
    const end = (): void => {
      client.destroy()
      device.destroy()
    }
    client.on('error', end).on('close', end).pipe(device)
    device.on('error', end).on('end', () => client.end())
    device.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      proxy.passedBytes += chunk.length
      if (bytes > proxy.breakAfterBytes) {
        proxy.breakAfterBytes = Infinity
        proxy.broken += 1
        // Data sent before this arrives; a reset would discard it.
        client.end(chunk.subarray(0, 1_000))
        device.destroy()
        return
      }
      if (client.write(chunk)) return
      device.pause()
      client.once('drain', () => device.resume())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const proxy: BreakingProxy = {
    port: (server.address() as AddressInfo).port,
    breakAfterBytes: Infinity,
    broken: 0,
    passedBytes: 0,
    [Symbol.asyncDispose]: async () => {
      server.close()
    },
  }
  return proxy
}

describe('a download from appliances continues', () => {
  const parts = new AsyncDisposableStack()
  const appliances: TempAppliance[] = []
  const proxies: BreakingProxy[] = []
  let gateway: TempGateway
  let capture: BigCapture

  before(async () => {
    const redis = parts.use(await TempRedis.create())
    for (const _ of [0, 1]) {
      const appliance = parts.use(await startTempAppliance({ segmentBytes: 2 * MIB }))
      const path = join(appliance.folder, 'big.pcap')
      capture = await writeBigCapture(path, PACKETS)
      await appliance.importFiles('big', path)
      appliances.push(appliance)
      proxies.push(parts.use(await startBreakingProxy(appliance.url)))
    }
    const devices = appliances.map((appliance, index) => {
      const [user = '', password = ''] = appliance.credentials('user').split(':')
      const url = `http://127.0.0.1:${proxies[index]?.port}`
      const config = { name: `d${index}`, url, user, password: { env: 'FAKE_DEVICE_PASSWORD' } }
      return { config, password }
    })
    gateway = parts.use(await startTempGateway(devices, redis.url))
  })
  after(() => parts.disposeAsync())

  const get = (path: string) =>
    httpGet(gateway.url + path, { headers: { ...gateway.as.user, te: 'trailers' } })
  const range = () =>
    `TSBegin=${capture.startNs}&TSEnd=${capture.startNs + BigInt(PACKETS) * 1_000_000n}&TSUnit=nanos`

  for (const [what, parameters] of [
    ['plain', ''],
    ['filtered', '&FilterBPF=udp%20or%20not%20ip'],
    ['sliced', '&Slice=700'],
    ['limited', `&MaxPackets=${PACKETS - 100}`],
    ['by the time of a switch', '&TSMode=vendorA7130'],
  ] as const) {
    test(`of one, ${what}: any size of the file, continued by Offset, makes the same file (SEED=${RANDOM.seed})`, async () => {
      const path = `/devices/d0/api/v1/pcap/timerange?${range()}${parameters}`
      const { headers, body } = await get(path)
      assert.ok(body.length > 3 * MIB, `${body.length} bytes`)
      const [proxy] = proxies as [BreakingProxy]
      const sizes = [0, ...(IS_LONG ? [24] : []), 25, 2 * MIB, body.length - 1, body.length]
      for (let round = 0; round < ROUNDS; round += 1) sizes.push(RANDOM.integer(0, body.length))
      for (const size of sizes) {
        const passedBefore = proxy.passedBytes
        const rest = await get(`${path}&Resume=${headers['capfleet-request-id']}&Offset=${size}`)
        assert.equal(rest.status, 200, rest.body.subarray(0, 500).toString())
        assert.ok(Buffer.concat([body.subarray(0, size), rest.body]).equals(body), `size ${size}`)
        const again = proxy.passedBytes - passedBefore - rest.body.length
        assert.ok(again < 2.5 * MIB, `${again} bytes came twice at ${size}`)
      }
    })
  }

  for (const [what, parameters] of [
    ['by time', ''],
    ['by bytes, as it does not vouch for the order', '&TSMode=vendorA7130'],
    ['by bytes, filtered', '&TSMode=vendorA7130&FilterBPF=not%20tcp'],
  ] as const) {
    test(`of two, when one breaks off: ${what}`, async () => {
      const path = `/api/v1/pcap/timerange?${range()}${parameters}`
      const { body } = await get(path)
      assert.ok(body.length > 6 * MIB, `${body.length} bytes`)
      const [proxy] = proxies as [BreakingProxy]
      for (const breakAfterBytes of [30_000, RANDOM.integer(1, 5 * MIB), ...(IS_LONG ? [5 * MIB] : [])]) {
        const brokenBefore = proxy.broken
        const passedBefore = proxy.passedBytes
        proxy.breakAfterBytes = breakAfterBytes
        const again = await get(path)
        assert.equal(proxy.broken, brokenBefore + 1)
        assert.ok(again.body.equals(body), `after ${breakAfterBytes}`)
        const passed = proxy.passedBytes - passedBefore
        assert.ok(passed < body.length / 2 + 2 * MIB, `${passed} bytes passed`)
      }
    })
  }

  describe('whose store is damaged before the place', () => {
    before(async () => {
      const [{ storePath }] = appliances as [TempAppliance]
      const segment = join(storePath, 'captures', 'big', 'cap0', '00000', '00000001.pcap')
      await using file = await open(segment, 'r+')
      const { buffer } = await file.read(Buffer.alloc(1), 0, 1, 1_000_000)
      await file.write(Buffer.from([buffer.readUInt8(0) ^ 1]), 0, 1, 1_000_000)
    })

    for (const format of ['pcap', 'pcapng']) {
      test(`of two, when one breaks off, and when the client has left: ${format} that says what is missing`, async () => {
        const path = `/api/v1/pcap/timerange?${range()}&Format=${format}`
        const [proxy] = proxies as [BreakingProxy]
        const brokenBefore = proxy.broken
        // The damaged block is not known yet, and was left out before the place.
        proxy.breakAfterBytes = 2 * MIB
        const broken = await get(path)
        assert.equal(proxy.broken, brokenBefore + 1)
        const whole = await get(path)
        const { headers, body } = whole
        const offset = Math.floor(0.7 * body.length)
        const rest = await get(`${path}&Resume=${headers['capfleet-request-id']}&Offset=${offset}`)
        for (const { trailers } of [broken, whole, rest])
          assert.deepEqual(
            [trailers['capfleet-complete'], trailers['capfleet-corrupt-blocks']],
            ['0', '1'],
            JSON.stringify(trailers),
          )
        // Comments of pcapng tell more once the device knows of the damage.
        if (format === 'pcap') assert.ok(broken.body.equals(body))
        assert.ok(Buffer.concat([body.subarray(0, offset), rest.body]).equals(body))
      })
    }
  })
})
