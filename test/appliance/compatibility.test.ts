// What scripts for existing appliances rely on: the twelve points of the API's compatibility list.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { APPLIANCE_ROUTES } from '../../appliance/appliance-routes.ts'
import { eventually } from '../support/eventually.ts'
import { type BigCapture, writeBigCapture } from '../support/packets/big-capture.ts'
import { makePacket } from '../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../support/packets/pcap-records.ts'
import { makePcapng } from '../support/packets/pcapng-maker.ts'
import { pause } from '../support/pause.ts'
import { shellPipeline } from '../support/processes/shell-pipeline.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'
import { startTempNginx, WITHOUT_NGINX } from '../support/processes/temp-proxy.ts'

/** Shortly after 2026-09-21 14:13:20 UTC; every digit matters. */
const START_NS = 1_790_000_000_123_456_789n
const FULL_NAME = 'trading_20260921_1413'
const RANGE = '/api/v1/pcap/timerange'

let appliance: TempAppliance
let big: BigCapture
/** Five minutes of packets, 100 ms apart. */
const records: PcapRecord[] = Array.from({ length: 3_000 }, (_, index) =>
  makePacket(START_NS + BigInt(index) * 100_000_000n, `packet ${index}`, 200),
)

before(async () => {
  appliance = await startTempAppliance({ segmentBytes: 1 << 20 })
  const ports = records.map((record, index) => ({ ...record, port: index % 4 }))
  const path = join(appliance.folder, 'trading.pcapng')
  await writeFile(path, makePcapng(4, ports))
  await appliance.importFiles(FULL_NAME, path)
  big = await writeBigCapture(join(appliance.folder, 'big.pcap'))
  await appliance.importFiles('big', join(appliance.folder, 'big.pcap'))
})
after(() => appliance[Symbol.asyncDispose]())

async function packetsOf(path: string): Promise<string[]> {
  const answer = await appliance.get(path)
  assert.equal(answer.status, 200, `${path}: ${answer.body.toString('utf8', 0, 500)}`)
  return recordLines(readPcap(answer.body).records)
}

const curl = (more = ''): string => `curl -fsS -u "$USER_PASSWORD" ${more}`
const environment = (url: string) => ({ USER_PASSWORD: appliance.credentials('full'), URL: url })

test('1. time_current is 19 digits and a line end', async () => {
  const { body } = await appliance.get('/api/v1/system/time_current')
  assert.match(body.toString(), /^\d{19}\n$/)
})

test('2. CaptureEnable is a string, Status a boolean, and playbooks find their phrases', async () => {
  const status = async () => (await appliance.get('/sysmaster/capture_status')).json()
  const idle = await status()
  assert.deepEqual([idle.CaptureEnable, typeof idle.Status], ['false', 'boolean'])
  const started = (await appliance.get('/sysmaster/capture_start?StreamName=phrases&')).json()
  assert.equal(started.Status, true)
  assert.match(String(started.Str), /successfully started capture \[phrases\]/)
  assert.equal((await status()).CaptureEnable, 'true')
  const stopped = (await appliance.get('/sysmaster/capture_stop')).json()
  assert.equal(stopped.Status, true)
  assert.match(String(stopped.Str), /successfully stopped capture/)
  const deleted = (await appliance.get(`/pcap/del?StreamName=${started.StreamName}`)).json()
  assert.equal(deleted.Status, true)
  assert.match(String(deleted.Str), /deleted capture \[phrases_/)
})

test('3. ULL, &&, a trailing & and rand= are accepted on every path', async () => {
  const parameters: Readonly<Record<string, string>> = {
    '/pcap/del': 'StreamName=nosuch',
    '/sysmaster/capture_start': 'StreamName=ull',
    '/api/v1/seen': `Address=10.1.2.3&&TSBegin=${START_NS}ULL&TSEnd=${START_NS + 1n}ULL`,
  }
  for (const { path } of APPLIANCE_ROUTES.filter(({ method }) => method === 'GET')) {
    const query =
      parameters[path] ??
      `StreamName=${FULL_NAME}&&Start=${START_NS}ULL&Stop=${START_NS + 1n}ULL&TSBegin=${START_NS}ULL&TSEnd=${START_NS + 1n}ULL`
    const { status, body } = await appliance.ask(`${path}?${query}&&rand=0.25&`)
    assert.equal(status, path === '/pcap/del' ? 404 : 200, `${path}: ${body.toString('utf8', 0, 300)}`)
  }
  await appliance.get('/sysmaster/capture_stop')
  assert.equal(
    (await packetsOf(`/pcap/timerange?TSBegin=${START_NS}ULL&TSEnd=${START_NS + 1n}ULL&&`)).length,
    1,
  )
})

test('4. adjacent splits put together are the single download: nothing twice, nothing lost', async () => {
  const whole = await packetsOf(`/pcap/single?StreamName=${FULL_NAME}`)
  assert.equal(whole.length, records.length)
  for (const [path, view] of [
    ['stime', 'split_10sec'],
    ['stime', 'split_1min'],
    ['ssize', 'split_10MB'],
  ] as const) {
    const answer = await appliance.get(`/stream/${path}?StreamName=${FULL_NAME}&StreamView=${view}`)
    const parts: string[] = []
    for (const { PCAP } of answer.json().List as { PCAP: string }[]) parts.push(...(await packetsOf(PCAP)))
    assert.deepEqual(parts, whole, view)
  }
})

test('5. nanoseconds in JSON are exact strings', async () => {
  const list = (await appliance.get('/stream/list')).json().List as Record<string, unknown>[]
  const entry = list.find(({ StreamName }) => StreamName === FULL_NAME)
  const last = records.at(-1)?.ns ?? 0n
  assert.deepEqual([entry?.StartTS, entry?.EndTS], [String(START_NS), String(last + 1n)])
})

test('6. TSMode=sec of a V1 time range is a unit, and TSUint is TSUnit', async () => {
  const seconds = 'TSBegin=1790000000&TSEnd=1790000010'
  const expected = await packetsOf(`${RANGE}?TSBegin=1790000000000000000&TSEnd=1790000010000000000`)
  assert.equal(expected.length, 99)
  for (const unit of ['TSMode=sec', 'TSUint=sec', 'TSUnit=sec', '']) {
    assert.deepEqual(await packetsOf(`${RANGE}?${seconds}&${unit}`), expected, unit)
  }
})

test('7. Asia/Singapore, Singapore and singapore are equal, West is ambiguous', async () => {
  const local = 'TSBegin=20260921_221320&TSEnd=20260921_221330&TSUnit=YYYYMMDD_HHMMSS'
  const expected = await packetsOf(`${RANGE}?TSBegin=1790000000&TSEnd=1790000010&TSUnit=sec`)
  for (const zone of ['Asia/Singapore', 'Singapore', 'singapore']) {
    assert.deepEqual(await packetsOf(`${RANGE}?${local}&TSZone=${zone}`), expected, zone)
  }
  const west = (await appliance.get(`${RANGE}?${local}&TSZone=West`)).json()
  assert.equal(west.code, 'ambiguous-timezone')
  assert.ok(Array.isArray(west.candidates) && west.candidates.length > 1)
})

test('8. FilterFrame takes =, ==, !=, lists and " and ", percent-encoded as curl sends it', async () => {
  const count = async (filter: string): Promise<number> => {
    const { stdout } = await shellPipeline(
      `${curl('-G --data-urlencode "FilterFrame=$FILTER"')} "$URL" | tcpdump -nr - 2>/dev/null | wc -l`,
      { ...environment(`${appliance.url}/api/v1/pcap/single?StreamName=${FULL_NAME}`), FILTER: filter },
    )
    return Number(stdout)
  }
  const quarter = records.length / 4
  assert.equal(await count('capture.port=1'), quarter)
  assert.equal(await count('capture.port==1'), quarter)
  assert.equal(await count('capture.port != 1'), 3 * quarter)
  assert.equal(await count('capture.port == 0,2, 3'), 3 * quarter)
  assert.equal(await count('capture.port==0,2 and capture.port!=2'), quarter)
  assert.equal(await count('capture.port==0 and capture.port==1'), 0)
})

test('9. an empty result is the 24-byte header, which tcpdump reads', async () => {
  const path = `${RANGE}?TSBegin=1&TSEnd=2&TSUnit=sec`
  assert.equal((await appliance.get(path)).body.length, 24)
  const { codes } = await shellPipeline(
    `${curl()} "$URL" | tcpdump -nr -`,
    environment(`${appliance.url}${path}`),
  )
  assert.deepEqual(codes, [0, 0])
})

describe('10. a cut stream: curl fails and tcpdump exits 1', () => {
  /** A download whose capture is forcibly deleted after tcpdump's first line. */
  async function cutDownload(baseUrl: string, name: string): Promise<readonly number[]> {
    await appliance.importFiles(name, join(appliance.folder, 'big.pcap'))
    const { codes, stderr } = await shellPipeline(
      `${curl('--limit-rate 8M')} "$URL" | tcpdump -nlr - | { read -r line; ${curl('-o /dev/null')} "$DELETE"; cat >/dev/null; }`,
      {
        ...environment(`${baseUrl}/api/v1/pcap/single?StreamName=${name}`),
        DELETE: `${appliance.url}/pcap/del?StreamName=${name}&Force=1`,
      },
    )
    assert.match(stderr, /truncated/)
    return codes
  }

  test('direct', async () => {
    // Because of the reset: without one, GNU wget would take the end of the connection for the end of the file.
    assert.deepEqual(await cutDownload(appliance.url, 'cut1'), [56, 1, 0])
  })

  test('through nginx', { skip: WITHOUT_NGINX }, async () => {
    await using nginx = await startTempNginx(appliance.url)
    const whole = await shellPipeline(
      `${curl()} "$URL" | tcpdump -nr - 2>/dev/null | wc -l`,
      environment(`${nginx.url}/api/v1/pcap/single?StreamName=${FULL_NAME}`),
    )
    assert.equal(Number(whole.stdout), records.length, 'a whole download comes through whole')
    assert.deepEqual(await cutDownload(nginx.url, 'cut2'), [18, 1, 0])
  })
})

describe('11. four downloads at a time', () => {
  const SINGLE = '/api/v1/pcap/single?StreamName=big'

  test('the fifth is 503 with Retry-After, and curl --retry 3 has it when one is free', async () => {
    using held = new DisposableStack()
    const answers = await Promise.all(Array.from({ length: 4 }, () => appliance.open(SINGLE)))
    for (const answer of answers) held.use(answer)
    await eventually(async () => (await appliance.slotsUsed()) === 4, { message: 'four' })
    const fifth = await appliance.get('/pcap/single?StreamName=big')
    assert.deepEqual([fifth.status, fifth.json().code], [503, 'download-slots-exhausted'])
    assert.match(fifth.headers['retry-after'] ?? '', /^\d+$/)
    const retried = shellPipeline(
      `${curl('--retry 3')} "$URL" | tcpdump -nr - 2>/dev/null | wc -l`,
      environment(`${appliance.url}${SINGLE}&Slice=60`),
    )
    void pause(500, 'curl has been refused once').then(() => held.dispose())
    const { stdout, codes } = await retried
    assert.deepEqual([Number(stdout), codes], [big.packets, [0, 0, 0]])
  })

  test('a slot is free within 1 s of a disconnect', async () => {
    // The fastest of several: a busy machine makes some of them slow.
    let tookMs = Number.POSITIVE_INFINITY
    for (let round = 0; round < 5 && tookMs >= 1_000; round++) {
      const answer = await appliance.open(SINGLE)
      await eventually(async () => (await appliance.slotsUsed()) === 1, { message: 'one' })
      const leftMs = performance.now()
      answer[Symbol.dispose]()
      await eventually(async () => (await appliance.slotsUsed()) === 0, { message: 'none' })
      tookMs = performance.now() - leftMs
    }
    assert.ok(tookMs < 1_000, `${tookMs} ms`)
  })
})

test('12. a second start in the same minute gets the seconds too', async () => {
  const start = async (): Promise<string> => {
    const { StreamName } = (await appliance.get('/sysmaster/capture_start?StreamName=twice')).json()
    assert.equal((await appliance.get('/sysmaster/capture_stop')).status, 200)
    return String(StreamName)
  }
  // The minute may end between the first two starts; then the third one is in the same minute as the second.
  const names = [await start(), await start(), await start()]
  assert.equal(new Set(names).size, 3)
  assert.ok(names.every((name) => /^twice_\d{8}_\d{4}(_\d{2}(_\d+)?)?$/.test(name)))
  assert.ok(
    names.some((name) => /^twice_\d{8}_\d{4}_\d{2}/.test(name)),
    names.join(' '),
  )
})
