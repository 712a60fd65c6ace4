// After=N delivers the body starting at its Nth byte. The oracle is the body of the same query without After.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { rawAnswers, rawExchange } from '../../support/clients/raw-client.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const START_NS = 1_790_000_000_000_000_000n
const PACKETS = 6_000
const RANGE = `TSBegin=${START_NS}&TSEnd=${START_NS + 1_000_000_000n}`
const SINGLE = '/api/v1/pcap/single?StreamName=east'
/** Queries that differ in order, and that each take another path through the engine. */
const QUERIES = [
  SINGLE,
  `/api/v1/pcap/timerange?${RANGE}&TSUnit=nanos`,
  `/api/v1/pcap/splittime?StreamName=west&Start=${START_NS + 5_000n}&Stop=${START_NS + 20_000n}`,
  '/pcap/single?StreamName=west',
  `/pcap/timerange?${RANGE}&TSMode=nsec`,
  `/pcap/splittime?StreamName=east&Start=${START_NS + 77n}ULL&Stop=${START_NS + 30_000n}ULL`,
  `${SINGLE}&FilterBPF=len%20%25%203%20%3D%201`,
  `${SINGLE}&Slice=33`,
  `${SINGLE}&TSResolution=usec&MaxPackets=1000`,
  `${SINGLE}&MaxBytes=1000000`,
  `${SINGLE}&TSMode=vendorA7130`,
  `${SINGLE}&Format=pcapng`,
  `/api/v1/pcap/timerange?${RANGE}&TSUnit=nanos&Format=pcapng&Slice=50`,
]
let appliance: TempAppliance

before(async () => {
  appliance = await startTempAppliance({ segmentBytes: 500_000 })
  const random = seededRandom(SEED)
  for (const name of ['east', 'west']) {
    let ns = START_NS
    const records = Array.from({ length: PACKETS }, (_, index) => {
      ns += BigInt(random.integer(0, 10))
      return makePacket(ns, `${name}:${index}`, random.integer(20, 1_000))
    })
    const path = join(appliance.folder, `${name}.pcap`)
    await writeFile(path, makePcap(records))
    await appliance.importFiles(name, path)
  }
})
after(() => appliance[Symbol.asyncDispose]())

/** The trailers without the one that counts the bytes sent. */
function totalsOf({ 'capfleet-bytes': _sent, ...totals }: NodeJS.Dict<string>): NodeJS.Dict<string> {
  return totals
}

for (const query of QUERIES) {
  test(`the tail of ${query} (SEED=${SEED})`, async () => {
    const random = seededRandom(SEED)
    const whole = await appliance.get(query)
    assert.equal(whole.headers['capfleet-after'], undefined)
    assert.ok(whole.body.length > 100_000)
    const inside = Array.from({ length: 4 }, () => random.integer(0, whole.body.length))
    for (const position of [0, 7, 24, 31, ...inside, whole.body.length, 2n ** 63n - 1n]) {
      const answer = await appliance.get(`${query}&After=${position}`)
      assert.equal(answer.status, 200)
      assert.equal(answer.headers['capfleet-after'], String(position))
      assert.equal(answer.headers['capfleet-ignored'], undefined)
      assert.ok(answer.body.equals(whole.body.subarray(Number(position))), `after ${position}`)
      assert.equal(answer.trailers['capfleet-bytes'], String(answer.body.length))
      assert.deepEqual(totalsOf(answer.trailers), totalsOf(whole.trailers))
    }
  })
}

test('a continued download may be compressed: members or frames of what is sent', async () => {
  const whole = await appliance.get(SINGLE)
  for (const position of [10, 24, 700_001, whole.body.length, whole.body.length + 1]) {
    const gzip = await appliance.get(`${SINGLE}&After=${position}&Compression=fast`)
    assert.ok(gunzipSync(gzip.body).equals(whole.body.subarray(position)))
    const zstd = await appliance.get(`${SINGLE}&After=${position}&Compression=zstd`)
    const unpacked = execFileSync('zstd', ['-dcq'], { input: zstd.body, maxBuffer: 1 << 28 })
    assert.ok(unpacked.equals(whole.body.subarray(position)))
    assert.equal(zstd.headers['capfleet-after'], String(position))
    assert.deepEqual(totalsOf(zstd.trailers), totalsOf(whole.trailers))
  }
})

test('an empty body ends as cleanly on the wire as any other', async () => {
  const authorization = Buffer.from(appliance.credentials('user')).toString('base64')
  const request = `GET ${SINGLE}&After=999999999 HTTP/1.1\r\nHost: a\r\nAuthorization: Basic ${authorization}\r\nConnection: close\r\n\r\n`
  const bytes = await rawExchange(appliance.url, request)
  const [answer] = rawAnswers(bytes)
  assert.deepEqual([answer?.status, answer?.isWhole, answer?.body.length], [200, true, 0])
  assert.match(bytes.toString('latin1'), /\r\nCapfleet-After: 999999999\r\n/)
})

test('metrics count what was sent', async () => {
  const delivered = async (): Promise<number> => {
    const metrics = (await appliance.get('/metrics')).body.toString()
    return Number(/^capfleet_store_download_packets_total (\d+)$/m.exec(metrics)?.[1])
  }
  const { body } = await appliance.get(SINGLE)
  const before = await delivered()
  await appliance.get(`${SINGLE}&After=${body.length}`)
  assert.equal(await delivered(), before)
  await appliance.get(`${SINGLE}&After=${body.length - 1}`)
  assert.equal(await delivered(), before + 1)
})

test('HEAD says Capfleet-After too', async () => {
  const head = await appliance.get(`${SINGLE}&After=24`, { method: 'HEAD' })
  assert.deepEqual([head.status, head.headers['capfleet-after']], [200, '24'])
})

test('the refusal beside Follow names the way out', async () => {
  const answer = await appliance.get(`${SINGLE}&Follow=1&After=24`)
  assert.equal(answer.status, 400)
  assert.match(answer.json().detail as string, /TSBegin, or leave out Follow/)
})

test('an estimate is of the whole body', async () => {
  const whole = (await appliance.get('/api/v1/pcap/estimate?StreamName=east')).json()
  const continued = (await appliance.get('/api/v1/pcap/estimate?StreamName=east&After=5000')).json()
  assert.deepEqual(continued, whole)
})
