// A merge is resumed near the position, not from its beginning: devices are asked for later times.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { connectTo, rawAnswers } from '../../../support/clients/raw-client.ts'
import {
  SIMULATED_BEGIN_NS,
  simulatedMerge,
  simulatedRange,
} from '../../../support/devices/simulated-capture.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../support/http-get.ts'
import { readPcap, recordLines } from '../../../support/packets/pcap-records.ts'
import {
  type SimulatedWorld,
  startSimulatedWorld,
} from '../../../support/processes/gateway-over-simulated.ts'
import { startTempGateway } from '../../../support/processes/temp-gateway.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const RANDOM = seededRandom()
const PACKETS = 6_000
const MERGE = `/api/v1/pcap/timerange?${simulatedRange(PACKETS)}`
const EXPECTED = simulatedMerge([0, 1], PACKETS)
const MARK_EVERY_BYTES = 1_048_576

let world: SimulatedWorld

before(async () => {
  world = await startSimulatedWorld({ devices: 2, packets: PACKETS + 1, packetsPerTick: 2_000 })
})
after(() => world[Symbol.asyncDispose]())

const get = (path: string) => httpGet(world.gateway.url + path, { headers: world.gateway.as.user })

async function wholeId(): Promise<string> {
  const { headers, body } = await get(MERGE)
  assert.ok(body.equals(EXPECTED))
  return String(headers['capfleet-request-id'])
}

test(`any size of the client's file, continued by Offset, makes the same file (SEED=${RANDOM.seed})`, async () => {
  const id = await wholeId()
  const sizes = [0, 1, 24, 25, MARK_EVERY_BYTES, EXPECTED.length - 1, EXPECTED.length]
  for (let round = 0; round < 20; round += 1) sizes.push(RANDOM.integer(0, EXPECTED.length))
  for (const size of sizes) {
    const rest = await get(`${MERGE}&Resume=${id}&Offset=${size}`)
    assert.equal(rest.status, 200, rest.body.subarray(0, 500).toString())
    assert.ok(Buffer.concat([EXPECTED.subarray(0, size), rest.body]).equals(EXPECTED), `size ${size}`)
  }
})

test('devices are asked from a time near the place', async () => {
  const id = await wholeId()
  const size = EXPECTED.length - 10_000
  const rest = await get(`${MERGE}&Resume=${id}&Offset=${size}`)
  const receipt = (await get(`/v1/requests/${rest.headers['capfleet-request-id']}`)).json()
  const [first] = receipt.devices as { firstNs: string; packets: string }[]
  assert.ok(BigInt(first?.firstNs ?? 0) > SIMULATED_BEGIN_NS)
  assert.ok(Number(first?.packets) < PACKETS / 2, `${first?.packets} packets were read again`)
})

test('a device that holds other packets at the mark: 410 before the first byte', async () => {
  const id = await wholeId()
  const [device] = world.devices
  device?.holdCaptureOf(5)
  try {
    const rest = await get(`${MERGE}&Resume=${id}&Offset=500000`)
    assert.deepEqual([rest.status, rest.json().code], [410, 'aged-out'])
  } finally {
    device?.holdCaptureOf(0)
  }
})

test('a continuation leaves its own marks and can be continued', async () => {
  const id = await wholeId()
  const [one, two] = [2_000_003, 5_000_005]
  const middle = await get(`${MERGE}&Resume=${id}&Offset=${one}`)
  const rest = await get(`${MERGE}&Resume=${middle.headers['capfleet-request-id']}&Offset=${two}`)
  assert.ok(rest.body.equals(EXPECTED.subarray(two)))
})

test('what continued without a device is not resumed when it is back: its packets would be silently missing', async () => {
  const [, second] = world.devices
  // All of them come before the time from which devices would be asked again.
  second?.holdCaptureOf(1, 100)
  try {
    await second?.powerOff()
    const { headers, body } = await get(`${MERGE}&OnError=partial`)
    await second?.powerOn()
    assert.match(String(headers['capfleet-missing']), /^d1;/)
    const rest = `&Resume=${headers['capfleet-request-id']}&Offset=${body.length - 1_000_000}`
    const answer = await get(`${MERGE}&OnError=partial${rest}`)
    assert.deepEqual([answer.status, answer.json().param], [400, 'Resume'])
    assert.match(String(answer.json().detail), /without packets of d1 .*request it again/)
  } finally {
    second?.holdCaptureOf(1)
  }
})

test('what may have continued without a device, known only to its own gateway, is not resumed by another', async () => {
  const settings = { downloads: { retryPauseMs: 10 } }
  await using local = await startSimulatedWorld({
    devices: 2,
    packets: PACKETS + 1,
    packetsPerTick: 1,
    settings,
  })
  await using other = await startTempGateway(local.members, local.redis.url, settings)
  const headers = local.gateway.as.user
  const receiptAt = async ({ url }: { readonly url: string }, id: string) =>
    (await httpGet(`${url}/v1/requests/${id}`, { headers })).json() as {
      status: string
      devices: { status: string }[]
    }
  using running = await httpOpen(`${local.gateway.url}${MERGE}&OnError=partial`, { headers })
  const id = String(running.response.headers['capfleet-request-id'])
  let bytes = 0
  running.response.on('data', ({ length }: Buffer) => {
    bytes += length
  })
  const isKept = async () => bytes > 100_000 && (await receiptAt(other, id)).status === 'streaming'
  await eventually(isKept, { message: 'the other gateway knows it' })
  await local.devices[1]?.powerOff()
  const isLeftOut = async () => (await receiptAt(local.gateway, id)).devices[1]?.status === 'failed'
  await eventually(isLeftOut, { message: 'd1 is given up' })
  await local.devices[1]?.powerOn()
  const rest = `&OnError=partial&Resume=${id}&Offset=${bytes}`
  const answer = await httpGet(`${other.url}${MERGE}${rest}`, { headers })
  assert.deepEqual([answer.status, answer.json().param], [400, 'Resume'])
})

test('after a cut by the gateway the new file begins with the first packet that did not arrive whole', async () => {
  await using local = await startSimulatedWorld({
    devices: 2,
    packets: PACKETS + 1,
    packetsPerTick: 500,
    settings: { downloads: { idleTimeoutMs: 1_000 } },
  })
  const ask = (path: string) => httpGet(local.gateway.url + path, { headers: local.gateway.as.user })
  // A raw socket, because HTTP clients drop received bytes when the connection breaks.
  const socket = await connectTo(local.gateway.url)
  const { authorization } = local.gateway.as.user
  socket.write(`GET ${MERGE} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const begun = Promise.withResolvers<void>()
  const chunks: Buffer[] = []
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    bytes += chunk.length
    // Early, because passed data may still be in sockets, and the device must have more to send.
    if (bytes < EXPECTED.length / 8) return
    bytes = Number.NEGATIVE_INFINITY
    socket.pause()
    begun.resolve()
  })
  await begun.promise
  // It now holds other data than it has sent, so the merge cannot resume.
  local.devices[0]?.holdCaptureOf(5)
  await local.devices[0]?.powerOff()
  await local.devices[0]?.powerOn()
  socket.resume()
  await closed
  local.devices[0]?.holdCaptureOf(0)
  const received = Buffer.concat(chunks)
  const [broken] = rawAnswers(received)
  assert.equal(broken?.isWhole, false)
  const id = /^capfleet-request-id: (\S+)/im.exec(received.toString('latin1'))?.[1]
  const receipt = (await ask(`/v1/requests/${id}`)).json()
  assert.equal(receipt.status, 'failed')
  const sent = broken?.body.subarray(0, Number(receipt.bytes)) ?? Buffer.alloc(0)
  const rest = await ask(`${MERGE}&Resume=${id}`)
  assert.deepEqual(
    recordLines([...readPcap(sent).records, ...readPcap(rest.body).records]),
    recordLines(readPcap(EXPECTED).records),
  )
})
