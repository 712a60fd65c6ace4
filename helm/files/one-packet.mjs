/**
 * `helm test`: one packet of the fleet, downloaded by way of the queue and again from its device itself, must be the same.
 * Plain JavaScript for the Node.js of the image.
 *   GATEWAY_URL, LOGIN_FOLDER (files "username" and "password"), TIMEOUT_S
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16

const { GATEWAY_URL, LOGIN_FOLDER, TIMEOUT_S } = process.env
const secret = (name) => readFileSync(join(LOGIN_FOLDER, name), 'utf8').trim()
const login = `Basic ${Buffer.from(`${secret('username')}:${secret('password')}`).toString('base64')}`
const deadline = AbortSignal.timeout(Number(TIMEOUT_S) * 1_000)

async function ask(path, query = {}) {
  const url = `${GATEWAY_URL}${path}?${new URLSearchParams(query)}`
  const response = await fetch(url, { headers: { authorization: login }, signal: deadline })
  const body = Buffer.from(await response.arrayBuffer())
  if (response.status !== 200) fail(`${url} answered ${response.status}: ${body.toString().slice(0, 500)}`)
  return body
}

function fail(text) {
  process.stderr.write(`test: ${text}\n`)
  process.exit(1)
}

/** The first capture with a packet; the lists are those of all devices. */
async function findCapture() {
  const { List: captures } = JSON.parse(await ask('/stream/list'))
  const found = captures.find(({ PacketCnt }) => Number(PacketCnt) > 0)
  if (found) return found
  const devices = JSON.parse(await ask('/v1/devices'))
  fail(
    `the fleet has no packet to download yet (${captures.length} captures); start a capture, and run the test again. ` +
      `Devices: ${JSON.stringify(devices)}`,
  )
}

/** The bytes of the one record after the file header. */
function onlyRecord(pcap, from) {
  const record = pcap.subarray(FILE_HEADER_BYTES)
  if (record.length <= RECORD_HEADER_BYTES) fail(`${from}: no packet in an answer of ${pcap.length} bytes`)
  const isBig = [0xa1b2c3d4, 0xa1b23c4d].includes(pcap.readUInt32BE(0))
  const captured = isBig ? record.readUInt32BE(8) : record.readUInt32LE(8)
  if (record.length !== RECORD_HEADER_BYTES + captured) {
    fail(`${from}: ${record.length} bytes behind the header, but the packet has ${captured}`)
  }
  return record
}

const { StreamName, Device } = await findCapture()
const query = { StreamName, MaxPackets: '1' }
const queued = onlyRecord(await ask('/api/v1/pcap/single', { ...query, Device }), 'gateway')
const own = onlyRecord(await ask(`/devices/${Device}/api/v1/pcap/single`, query), Device)
if (!queued.equals(own)) fail(`the packet of ${StreamName} is another one at the gateway than at ${Device}`)
process.stdout.write(
  `test: one packet of ${StreamName} at ${Device}: ${own.length} bytes, the same both ways\n`,
)
