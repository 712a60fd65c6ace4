/**
 * Format=pcapng of a fleet: each packet says in its bytes which device and port saw it, and tshark must name that
 * interface for it. 64 devices at night, 8 otherwise.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpGet } from '../../support/http-get.ts'
import { FILE, runOn } from '../../support/packets/file-programs.ts'
import { labelledCapture, labelOf } from '../../support/packets/labelled-packets.ts'
import { readPcapng } from '../../support/packets/pcapng-reader.ts'
import { SMALL_FLEET_START_NS as START_NS, startFleetOf } from '../../support/processes/small-fleet.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const PORTS = 2
const STEP_NS = 1_000_000n
const random = seededRandom()

interface Merged {
  readonly linkTypeOf?: ReadonlyMap<string, number>
  readonly packets: number
}

/** Merges a capture of each device; checks each packet, and returns the file. */
async function mergeOf(devices: readonly string[], { linkTypeOf, packets }: Merged) {
  const captureOf = (name: string): Buffer | undefined => {
    const [device = '', part] = name.split('-')
    if (part !== 'first') return undefined
    return labelledCapture({
      ...{ device, ports: PORTS, packets, startNs: START_NS, stepNs: STEP_NS },
      ...{ linkType: linkTypeOf?.get(device), bytesOf: () => random.integer(40, 300) },
    })
  }
  await using fleet = await startFleetOf(devices, { captureOf })
  const range = `TSBegin=${START_NS}&TSEnd=${START_NS + BigInt(packets) * STEP_NS}`
  const url = `${fleet.gateway.url}/api/v1/pcap/timerange?${range}&Format=pcapng`
  const { status, body } = await httpGet(url, { headers: fleet.gateway.as.full })
  assert.equal(status, 200, body.toString('utf8', 0, 400))
  const file = readPcapng(body)
  const fields = ['-T', 'fields', '-e', 'frame.interface_name', '-e', 'frame.time_epoch']
  const shown = runOn(fleet.appliances[0]?.folder ?? '', body, ['tshark', '-r', FILE, ...fields])
  const lines = shown.toString().trimEnd().split('\n')
  assert.deepEqual(
    lines,
    file.packets.map(({ ns, captured }) => `${labelOf(captured)}\t${secondsText(ns)}`),
  )
  // At equal times the device that is first in the fleet comes first.
  const expected = Array.from({ length: packets }, (_, index) =>
    devices.map((device) => `${device}:cap${index % PORTS}`),
  )
  assert.deepEqual(
    file.packets.map(({ captured }) => labelOf(captured)),
    expected.flat(),
  )
  assert.equal(file.interfaces.length, devices.length * PORTS)
  assert.equal(file.lastComment, `capfleet end: ${devices.length * packets} packets, complete`)
  return file
}

function secondsText(ns: bigint): string {
  return `${ns / 1_000_000_000n}.${String(ns % 1_000_000_000n).padStart(9, '0')}`
}

const DEVICES = process.env.CAPFLEET_LONG === '1' ? 64 : 8

test(`${DEVICES} devices with two ports each (SEED=${random.seed})`, async () => {
  const devices = Array.from({ length: DEVICES }, (_, number) => `site${number + 1}`)
  const { delivered } = await mergeOf(devices, { packets: 200 })
  assert.deepEqual(new Set(delivered), new Set([100n]))
})

test('four devices of different link types', async () => {
  const linkTypeOf = new Map([
    ['ethernet', 1],
    ['rawip', 101],
    ['cooked', 113],
    ['cooked2', 276],
  ])
  const { interfaces } = await mergeOf([...linkTypeOf.keys()], { linkTypeOf, packets: 200 })
  for (const { name, linkType } of interfaces)
    assert.equal(linkType, linkTypeOf.get(name.split(':')[0] ?? ''))
})
