import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const ESTIMATE = '/api/v1/pcap/estimate'
const START_NS = 1_790_000_000_000_000_000n
const random = seededRandom()
let appliance: TempAppliance

before(async () => {
  appliance = await startTempAppliance()
  for (const name of ['one', 'two']) {
    let ns = START_NS
    const records = Array.from({ length: 5_000 }, (_, index) => {
      ns += BigInt(random.integer(0, 2_000))
      return makePacket(ns, `${name} ${index}`, random.integer(60, 900))
    })
    const path = join(appliance.folder, `${name}.pcap`)
    await writeFile(path, makePcap(records))
    await appliance.importFiles(name, path)
  }
})
after(() => appliance[Symbol.asyncDispose]())

async function estimate(query: string): Promise<Record<string, unknown>> {
  const answer = await appliance.get(`${ESTIMATE}?${query}`)
  assert.equal(answer.status, 200, answer.body.toString())
  return answer.json()
}

test(`equals the download, for any range (SEED=${random.seed})`, async () => {
  for (let round = 0; round < 30; round++) {
    const beginNs = START_NS + BigInt(random.integer(0, 6_000_000))
    const endNs = beginNs + BigInt(random.integer(0, 3_000_000))
    const query = `TSBegin=${beginNs}&TSEnd=${endNs}`
    const body = await estimate(query)
    const download = await appliance.get(`/api/v1/pcap/timerange?${query}`)
    assert.deepEqual(
      [body.Kind, body.Exact, body.Bytes, body.Packets],
      ['timerange', true, String(download.body.length), download.trailers['capfleet-packets']],
    )
  }
})

test('a capture’s name means that capture, with Start and Stop a part of it', async () => {
  const single = await estimate('StreamName=one')
  assert.deepEqual(
    { ...single, Bytes: '' },
    {
      Kind: 'single',
      Packets: '5000',
      Bytes: '',
      Exact: true,
      BeginNs: '0',
      EndNs: '4294967296000000000',
      Captures: ['one'],
      LinkType: 1,
      Ignored: [],
    },
  )
  const part = await estimate(`StreamName=one&Start=${START_NS}&Stop=${START_NS + 1_000_000n}ULL&&foo=1`)
  assert.deepEqual([part.Kind, part.Ignored], ['splittime', ['foo']])
  assert.ok(Number(part.Packets) > 0 && Number(part.Packets) < 5_000)
})

test('with a filter or a limit the figures are a bound, and say so', async () => {
  for (const more of [
    'FilterBPF=less+100',
    'FilterFrame=capture.port==0',
    'FilterRE=one+7',
    'TSMax=1000',
    'Slice=20',
    'MaxBytes=5000',
    'MaxPackets=10',
  ]) {
    const body = await estimate(`StreamName=one&${more}`)
    const download = await appliance.get(`/api/v1/pcap/single?StreamName=one&${more}`)
    assert.equal(download.status, 200, download.body.toString())
    assert.equal(body.Exact, false, more)
    assert.ok(Number(body.Bytes) >= download.body.length, more)
    assert.ok(Number(body.Packets) >= Number(download.trailers['capfleet-packets']), more)
  }
  const sliced = await estimate('StreamName=one&Slice=20')
  assert.equal(sliced.Bytes, String(24 + 5_000 * 36))
})

test('takes no slot and checks filters while all slots are in use', async () => {
  using held = new DisposableStack()
  const waiting = Array.from({ length: 4 }, () => appliance.open('/api/v1/pcap/single?StreamName=one'))
  for (const opened of await Promise.all(waiting)) held.use(opened)
  assert.equal((await estimate('StreamName=one')).Packets, '5000')
  for (const [query, code, param] of [
    ['StreamName=one&FilterBPF=tcp+prot', 'bad-bpf', 'FilterBPF'],
    ['StreamName=one&FilterRE=(', 'bad-regex', 'FilterRE'],
    ['StreamName=one&FilterFrame=x', 'bad-frame-filter', 'FilterFrame'],
    ['StreamName=nosuch', 'unknown-capture', 'StreamName'],
    ['StreamName=one&Start=1', 'bad-parameter', 'Stop'],
    ['', 'bad-parameter', 'TSBegin'],
  ] as const) {
    const { code: given, param: at } = (await appliance.get(`${ESTIMATE}?${query}`)).json()
    assert.deepEqual([given, at], [code, param], query)
  }
})

test('needs the role of a download', async () => {
  const viewer = { user: appliance.credentials('viewer') }
  assert.equal((await appliance.get(`${ESTIMATE}?StreamName=one`, viewer)).status, 403)
})
