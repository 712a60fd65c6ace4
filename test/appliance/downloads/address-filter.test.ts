/** FilterAddresses over real packets: the same packets as a set of addresses selects, and as libpcap's `host` does. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { basename, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { STORABLE_FILES } from '../../support/packets/capture-files.ts'
import { packetAddresses } from '../../support/packets/packet-addresses.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import {
  type PcapContent,
  type PcapRecord,
  readPcap,
  recordLines,
} from '../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const LINK_TYPES: ReadonlySet<number> = new Set([1, 12, 101, 113, 276])
/** Bytes of an Ethernet frame with two tags and all addresses of IPv6. */
const WITH_ADDRESSES = 62
const SINGLE = '/api/v1/pcap/single'
let appliance: TempAppliance

before(async () => {
  appliance = await startTempAppliance()
})
after(() => appliance[Symbol.asyncDispose]())

const formOf = (pairs: Readonly<Record<string, string>>): string => new URLSearchParams(pairs).toString()

async function byGet(pairs: Readonly<Record<string, string>>): Promise<PcapContent> {
  const answer = await appliance.get(`${SINGLE}?${formOf(pairs)}`)
  assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 500))
  assert.equal(answer.trailers['capfleet-complete'], '1')
  return readPcap(answer.body)
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

async function byPost(pairs: Readonly<Record<string, string>>): Promise<PcapContent> {
  const answer = await appliance.get(SINGLE, { method: 'POST', headers: FORM, body: formOf(pairs) })
  assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 500))
  return readPcap(answer.body)
}

describe(`a list selects what a set of its addresses does (SEED=${SEED})`, () => {
  const random = seededRandom(SEED)
  let selected = 0
  for (const [index, path] of STORABLE_FILES.entries()) {
    test(basename(path), async () => {
      const StreamName = `file${index}`
      await appliance.importFiles(StreamName, path)
      const { records, linkType } = await byGet({ StreamName })
      const all = [...new Set(records.flatMap(({ captured }) => packetAddresses(linkType, captured)))]
      const asked = { StreamName, FilterAddresses: '192.0.2.77' }
      if (!LINK_TYPES.has(linkType)) {
        const { status } = await appliance.get(`${SINGLE}?${formOf(asked)}`)
        assert.equal(status, 400)
        return
      }
      assert.equal((await byGet(asked)).records.length, 0)
      const chosen = new Set(all.filter(() => random.integer(0, 2) === 0))
      if (chosen.size === 0) return
      const list = ['# chosen', ...chosen].join('\n')
      const expected = records.filter(({ captured }) =>
        packetAddresses(linkType, captured).some((address) => chosen.has(address)),
      )
      selected += expected.length
      const got = await byPost({ StreamName, FilterAddresses: list })
      assert.deepEqual(recordLines(got.records), recordLines(expected))
      if (linkType !== 1 || chosen.size > 40) return
      const hosts = [...chosen].map((address) => `${isIP(address) === 6 ? 'ip6 ' : ''}host ${address}`)
      const host = `(${hosts.join(' or ')})`
      const FilterBPF = `${host} or (vlan and (${host} or (vlan and ${host})))`
      const byLibpcap = await byGet({ StreamName, FilterBPF })
      // libpcap drops a packet when it looks for a second address that was not captured.
      const whole = (record: PcapRecord): boolean =>
        record.captured.length === record.originalLength || record.captured.length >= WITH_ADDRESSES
      assert.deepEqual(recordLines(got.records.filter(whole)), recordLines(byLibpcap.records.filter(whole)))
    })
  }
  test('packets were selected', () => assert.ok(selected > 100, String(selected)))
})

describe('beside other filters and limits', () => {
  const START_NS = 1_793_610_000_000_000_000n
  const COUNT = 2_000
  const addressOf = (index: number): string => `10.0.${(index >> 8) & 3}.${index & 255}`

  before(async () => {
    const packets = Array.from({ length: COUNT }, (_, index) => {
      const captured = Buffer.alloc(64)
      captured.writeUInt16BE(0x0800, 12)
      captured[14] = 0x45
      captured[23] = index % 2 === 0 ? 17 : 6
      captured.writeUInt32BE(0xc0000201, 26)
      captured.writeUInt32BE(0x0a000000 + index, 30)
      return { ns: START_NS + BigInt(index), originalLength: captured.length, captured }
    })
    const path = join(appliance.folder, 'plain.pcap')
    await writeFile(path, makePcap(packets))
    await appliance.importFiles('plain', path)
  })

  const plain = { StreamName: 'plain' }

  test('all must match', async () => {
    const all = await byGet({ ...plain, FilterAddresses: '10.0.0.0/26' })
    assert.equal(all.records.length, 64)
    const udp = await byGet({ ...plain, FilterAddresses: '10.0.0.0/26', FilterBPF: 'udp' })
    assert.equal(udp.records.length, 32)
    const none = await byGet({ ...plain, FilterAddresses: '10.0.0.0/26', FilterFrame: 'capture.port!=0' })
    assert.equal(none.records.length, 0)
    const inner = await byGet({
      ...plain,
      FilterAddresses: '10.0.0.9',
      FilterBPF: 'tcp',
      FilterBPFDecap: 'true',
    })
    assert.equal(inner.records.length, 1)
  })

  test('a limit counts what passes', async () => {
    const { records } = await byGet({ ...plain, FilterAddresses: '10.0.1.0/24', MaxPackets: '3' })
    assert.deepEqual(
      records.map(({ ns }) => ns - START_NS),
      [256n, 257n, 258n],
    )
  })

  test('10,000 entries come by POST, and equal the few of them that packets have', async () => {
    const some = [5, 77, 1_023].map(addressOf)
    const many = Array.from(
      { length: 9_997 },
      (_, index) => `172.${16 + (index >> 12)}.${(index >> 4) & 255}.${index & 15}`,
    )
    const got = await byPost({ ...plain, FilterAddresses: [...many, ...some].join('\n') })
    const few = await byGet({ ...plain, FilterAddresses: some.join(',') })
    assert.equal(few.records.length, 3)
    assert.deepEqual(recordLines(got.records), recordLines(few.records))
  })

  test('hundreds of hosts in FilterBPF compile, and select the same', async () => {
    const hosts = Array.from({ length: 170 }, (_, index) => addressOf(index * 6))
    const FilterBPF = hosts.map((address) => `host ${address}`).join(' or ')
    const byBpf = await byGet({ ...plain, FilterBPF })
    const byList = await byGet({ ...plain, FilterAddresses: hosts.join(',') })
    assert.ok(byList.records.length >= 170, String(byList.records.length))
    assert.deepEqual(recordLines(byBpf.records), recordLines(byList.records))
  })

  test('an estimate says that it is not exact', async () => {
    const answer = await appliance.get(
      `/api/v1/pcap/estimate?${formOf({ ...plain, FilterAddresses: '10.0.0.1' })}`,
    )
    assert.equal(answer.json().Exact, false)
    const posted = await appliance.get('/api/v1/pcap/estimate', {
      method: 'POST',
      headers: FORM,
      body: formOf({ ...plain, FilterAddresses: '10.0.0.1' }),
    })
    assert.deepEqual(posted.json(), answer.json())
  })

  const REFUSED: readonly [
    what: string,
    query: string,
    body: string | undefined,
    type: string,
    param: string | undefined,
  ][] = [
    ['an empty list', '?StreamName=plain&FilterAddresses=', undefined, '', 'FilterAddresses'],
    ['a name', '?StreamName=plain&FilterAddresses=example', undefined, '', 'FilterAddresses'],
    [
      'a parameter in both places',
      '?StreamName=plain',
      'StreamName=plain',
      FORM['content-type'],
      'StreamName',
    ],
    ['a body that is no form', '?StreamName=plain', '{}', 'application/json', undefined],
    [
      'a body that is too long',
      '?StreamName=plain',
      `rand=${'x'.repeat(2_097_152)}`,
      FORM['content-type'],
      undefined,
    ],
    [
      'a malformed escape',
      '',
      'StreamName=plain&FilterAddresses=%zz',
      FORM['content-type'],
      'FilterAddresses',
    ],
  ]
  for (const [what, query, body, type, param] of REFUSED) {
    test(`${what} is refused`, async () => {
      const answer = await appliance.get(`${SINGLE}${query}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: body === undefined ? {} : { 'content-type': type },
        ...(body === undefined ? {} : { body }),
      })
      assert.equal(answer.status, 400)
      const problem = answer.json()
      assert.deepEqual([problem.code, problem.param], ['bad-parameter', param])
    })
  }
})
