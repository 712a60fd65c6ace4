// FilterBPFDecap against tshark: which CAPWAP packets a filter selects by the station's frame. Each header, whole and
// cut, is in the engine's own tests (capwap_test.cc, decapsulation_test.cc).
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type FrameControlOrder, makeCapwapPacket } from '../support/packets/capwap-packets.ts'
import { makePcap } from '../support/packets/packet-maker.ts'
import { readPcap } from '../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'
import { seededRandom } from '../support/seeded-random.ts'

const PACKETS = 600
const FIRST_NS = 1_700_000_000_000_000_000n
const DECODED = 'tcp || icmp || arp || eapol || udp.port == 53'

/** A filter, and the tshark filter that selects the same packets; none of its fields occurs in the outer headers. */
const FILTERS: readonly (readonly [filter: string, display: string])[] = [
  ['tcp', 'tcp'],
  ['udp port 53', 'udp.port == 53'],
  ['icmp', 'icmp'],
  ['arp', 'arp'],
  ['ether proto 0x888e', 'eapol'],
  ['ip src 10.9.0.1', 'ip.src == 10.9.0.1'],
  ['ip6 src 2001:db8::9', 'ipv6.src == 2001:db8::9'],
]

/** tshark decodes later fragments too, whatever they begin with. */
const NO_LATER_FRAGMENT = '!(capwap.header.flags.f == 1 && capwap.header.fragment.offset > 0)'
/** Frames that are not changed; `udp` in a filter does not match UDP-Lite. */
const UNDECODED = `udp.port == 5247 && !udplite && !(${NO_LATER_FRAGMENT} && (${DECODED}))`

/** Numbers of the packets, starting at 1. */
function selectedByTshark(path: string, display: string, order: FrameControlOrder): number[] {
  const preferences = [
    `capwap.swap_fc:${order === 'swapped' ? 'TRUE' : 'FALSE'}`,
    'capwap.reassemble:FALSE',
    'wlan.defragment:FALSE',
  ]
  const options = preferences.flatMap((preference) => ['-o', preference])
  const output = execFileSync(
    'tshark',
    ['-r', path, ...options, '-Y', display, '-T', 'fields', '-e', 'frame.number'],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  )
  return output.split('\n').slice(0, -1).map(Number)
}

const random = seededRandom()

describe(`FilterBPFDecap selects CAPWAP packets as tshark does (SEED=${random.seed})`, () => {
  let appliance: TempAppliance
  const pathOf = (order: FrameControlOrder): string => join(appliance.folder, `${order}.pcap`)

  before(async () => {
    appliance = await startTempAppliance()
    for (const order of ['standard', 'swapped'] as const) {
      const records = Array.from({ length: PACKETS }, (_, index) => {
        const captured = makeCapwapPacket(random, order)
        return { ns: FIRST_NS + BigInt(index), originalLength: captured.length, captured }
      })
      await writeFile(pathOf(order), makePcap(records))
      await appliance.importFiles(order, pathOf(order))
    }
  })
  after(() => appliance[Symbol.asyncDispose]())

  async function selectedByFilter(order: FrameControlOrder, filter: string, decap = true): Promise<number[]> {
    const answer = await appliance.get(
      `/api/v1/pcap/single?StreamName=${order}&FilterBPFDecap=${decap}&FilterBPF=${encodeURIComponent(filter)}`,
    )
    assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
    return readPcap(answer.body).records.map(({ ns }) => Number(ns - FIRST_NS) + 1)
  }

  for (const order of ['standard', 'swapped'] as const) {
    test(`with IEEE 802.11 frame control in ${order} order`, async () => {
      for (const [filter, display] of FILTERS) {
        const expected = selectedByTshark(pathOf(order), `${NO_LATER_FRAGMENT} && (${display})`, order)
        assert.ok(expected.length > 10 && expected.length < PACKETS / 2, `${filter}: ${expected.length}`)
        assert.deepEqual(await selectedByFilter(order, filter), expected, filter)
      }
    })
  }

  test('where it finds no frame of a station, the packet itself', async () => {
    const expected = selectedByTshark(pathOf('swapped'), UNDECODED, 'swapped')
    assert.ok(expected.length > 10 && expected.length < PACKETS / 2, `${expected.length}`)
    assert.deepEqual(await selectedByFilter('swapped', 'udp port 5247'), expected)
  })

  test('and the comparison sees packets that are not looked into, or in the wrong order', async () => {
    const expected = selectedByTshark(pathOf('standard'), `${NO_LATER_FRAGMENT} && tcp`, 'standard')
    assert.notDeepEqual(await selectedByFilter('standard', 'tcp', false), expected)
    const inWrongOrder = selectedByTshark(pathOf('standard'), `${NO_LATER_FRAGMENT} && tcp`, 'swapped')
    assert.notDeepEqual(await selectedByFilter('standard', 'tcp'), inWrongOrder)
  })
})
