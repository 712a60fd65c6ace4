/** Sections 2.2 to 2.5 and 4.3 of the reference: answers of the V1 system paths. */
import assert from 'node:assert/strict'
import {
  CAT_SUFFIXES,
  IO_STATS_MEMBERS,
  PORT_COUNTERS,
  STATUS_MEMBERS,
  VERSION_MEMBERS,
  wrongMembers,
} from '../../support/devices/status-members.ts'
import { eventually } from '../../support/eventually.ts'
import { type Claim, INTEGER, OBJECT, row, STRING } from '../claim.ts'
import { START_CAPTURE, STOP_CAPTURE } from '../contract-queries.ts'
import type { Place, Seen } from '../place.ts'

const VERSION = '/api/v1/system/version'
const IO_STATS = '/api/v1/system/io_stats'
const PORT_STATS = '/api/v1/system/port_stats'
const STATUS = '/api/v1/system/status'
const TIME = '/api/v1/system/time_current'

type Json = Readonly<Record<string, unknown>>

const CAP_NAMES = Array.from({ length: 8 }, (_, port) => `cap${port}`)
const GROUPS = Object.keys(STATUS_MEMBERS)

/** The group has the members of the table, with their types. */
function group(id: string, name: string, claim: string, pattern = /./): Claim {
  return row(id, claim, {
    get: STATUS,
    see: (seen) => {
      const wanted = Object.entries(STATUS_MEMBERS[name] ?? {}).filter(([member]) => pattern.test(member))
      assert.ok(wanted.length > 0)
      assert.deepEqual(wrongMembers(seen.json()[name] as Json, Object.fromEntries(wanted)), [])
    },
  })
}

/** The counts of port 0 for these counts of its engine; size classes in the order of the table. */
async function portCounts(at: Place, sizeClasses: readonly bigint[]): Promise<Json> {
  await at.appliance.get(STOP_CAPTURE)
  await at.appliance.get(`${START_CAPTURE}?StreamName=counted`)
  at.stand.engineOf('east').count(0, { seenPackets: 45n, seenBytes: 4_500n, sizeClasses })
  let counts: Json = {}
  const areThere = async (): Promise<boolean> => {
    counts = (await at.ask(PORT_STATS)).json().cap0 as Json
    return counts.Pkt === 45
  }
  try {
    await eventually(areThere, { message: 'the counters of port 0 have come' })
    return counts
  } finally {
    await at.appliance.get(STOP_CAPTURE)
  }
}

const SIZES = Object.keys(PORT_COUNTERS).filter((name) => name.startsWith('Pkt_'))
const CLASS_COUNTS = SIZES.map((_, index) => BigInt(index + 1))

function isNow(seconds: unknown): void {
  assert.ok(Math.abs(Number(seconds) - Date.now() / 1_000) < 60, String(seconds))
}

function isNowNs(text: unknown): void {
  assert.match(String(text), /^\d{19}$/)
  isNow(BigInt(String(text)) / 1_000_000_000n)
}

export const SYSTEM_CLAIMS: readonly Claim[] = [
  row('2.2-1', 'The version is a JSON object.', { get: VERSION, text: /^\{/ }),
  row('2.2-2', 'It has the version as a string.', { get: VERSION, members: { version: /\d/ } }),
  row('2.2-3', 'Its member device is the model of the device.', {
    get: VERSION,
    members: { device: 'CF-1' },
  }),
  row('2.2-4', 'Its member build is the date and time of the build as a text.', {
    get: VERSION,
    members: { build: /\d{4}/ },
    see: (seen) => assert.deepEqual(wrongMembers(seen.json(), VERSION_MEMBERS), []),
  }),

  row('2.3-1', 'io_stats is a JSON object.', {
    get: IO_STATS,
    text: /^\{/,
    see: (seen) => assert.deepEqual(wrongMembers(seen.json(), IO_STATS_MEMBERS), []),
  }),
  row('2.3-2', 'Its timestamp is a string of epoch nanoseconds.', {
    get: IO_STATS,
    see: (seen) => isNowNs(seen.json().timestamp),
  }),
  row('2.3-3', 'Its ioqueue_active is a string that holds an integer.', {
    get: IO_STATS,
    members: { ioqueue_active: /^\d+$/ },
  }),

  row('2.4-1', 'port_stats has an object for each of cap0 to cap7.', {
    get: PORT_STATS,
    members: Object.fromEntries(CAP_NAMES.map((name) => [name, OBJECT])),
  }),
  row('2.4-2', 'Each of them holds the fourteen counters as integers.', {
    get: PORT_STATS,
    see: (seen) => {
      for (const name of CAP_NAMES)
        assert.deepEqual(wrongMembers(seen.json()[name] as Json, PORT_COUNTERS), [], name)
    },
  }),
  row('2.4-3', 'port_config is a string that describes the ports.', {
    get: PORT_STATS,
    members: { port_config: STRING },
  }),
  row('2.4-4', 'Pkt counts the packets and Byte the bytes of the port.', {
    act: async (at) => {
      const { Pkt, Byte } = await portCounts(at, CLASS_COUNTS)
      assert.deepEqual([Pkt, Byte], [45, 4_500])
    },
  }),
  row(
    '2.4-5',
    'The other counters are size classes: from shorter than 64 bytes to larger than the last class.',
    {
      act: async (at) => {
        const counts = await portCounts(at, CLASS_COUNTS)
        assert.deepEqual(
          SIZES.map((name) => counts[name]),
          CLASS_COUNTS.map(Number),
        )
      },
    },
  ),

  row('2.5-1', 'The status has its time in epoch seconds and a version.', {
    get: STATUS,
    members: { timestamp: INTEGER, ver: STRING },
    see: (seen) => isNow(seen.json().timestamp),
  }),
  row('2.5-2', 'It has one member for each of the ten groups.', {
    get: STATUS,
    members: Object.fromEntries(GROUPS.map((name) => [name, OBJECT])),
    see: () => assert.equal(GROUPS.length, 10),
  }),
  row(
    '2.5-3',
    'Each group says module "system", its own name as subsystem, its time in seconds and its version.',
    {
      get: STATUS,
      members: Object.fromEntries(
        GROUPS.flatMap((name) => [
          [`${name}.module`, 'system'],
          [`${name}.subsystem`, name],
          [`${name}.timestamp`, INTEGER],
          [`${name}.ver`, STRING],
        ]),
      ),
      see: (seen) => {
        for (const name of GROUPS) isNow((seen.json()[name] as Json).timestamp)
      },
    },
  ),
  group('2.5-4', 'temperature', 'temperature has ten numbers by place.'),
  group('2.5-5', 'fan', 'fan has a number for each of eight fans.'),
  group('2.5-6', 'disk', 'disk has the free gigabytes of five places.', /^FreeGB_/),
  group('2.5-7', 'disk', 'disk tells presence, temperature and SMART of ten disks.', /^Disk/),
  group('2.5-8', 'link', 'link has a boolean for each of eight capture ports and two management ports.'),
  group('2.5-9', 'io', 'io has the rates of reading and writing as numbers.'),
  group('2.5-10', 'capture', 'capture has flag, name, counts and rates of the capture.', /^Capture(?!Port)/),
  group('2.5-11', 'capture', 'capture has bytes and packets of each of eight ports.', /^CapturePort/),
  group('2.5-12', 'power', 'power has two flags of supplies and the watts.'),
  group('2.5-13', 'other', 'other has uptime, memory, cache, serial number and version.'),
  group('2.5-14', 'cat', 'cat has the members of each of eight readers.', /^cat_\d_/),
  group('2.5-15', 'cat', 'cat has the sums over all readers.', /^cat_[A-Z]/),
  row('2.5-16', 'The mode of a reader that is not enabled is empty.', {
    get: STATUS,
    members: { 'cat.cat_7_Enable': false, 'cat.cat_7_Mode': '' },
    see: () => assert.equal(Object.keys(CAT_SUFFIXES).length, 29),
  }),
  group('2.5-17', 'ptp', 'ptp has times, offsets, periods, flags and masters of the clocks.'),
  row('2.5-18', 'The payload is the same as that of the telemetry.', {
    act: async (at) => {
      const lines = (await at.ask('/api/v1/system/telemetry?Count=1&Interval=1')).text.trim().split('\n')
      const status = (await at.ask(STATUS)).json()
      const told = lines.map((line) => JSON.parse(line) as Json)
      assert.deepEqual(
        told.map(({ subsystem }) => subsystem),
        GROUPS,
      )
      for (const one of told) {
        assert.deepEqual(Object.keys(one), Object.keys(status[String(one.subsystem)] as Json))
      }
    },
  }),

  row('4.3-1', 'time_current is the clock of the capture hardware in epoch nanoseconds.', {
    get: TIME,
    see: (seen: Seen) => isNowNs(seen.text.trimEnd()),
  }),
  row('4.3-2', 'version answers the object of 2.2.', {
    get: VERSION,
    members: { version: STRING, build: STRING },
  }),
  row('4.3-3', 'port_stats answers the object of 2.4.', {
    get: PORT_STATS,
    members: { 'cap7.Pkt_OVER': INTEGER },
  }),
  row('4.3-4', 'io_stats answers the object of 2.3.', { get: IO_STATS, members: { ioqueue_active: STRING } }),
  row('4.3-5', 'status answers the object of 2.5.', { get: STATUS, members: { 'ptp.subsystem': 'ptp' } }),
]
