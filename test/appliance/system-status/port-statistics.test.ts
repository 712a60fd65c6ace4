// port_stats has the recorder's counts for its ports, and the kernel's for other ports.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApplianceContext, ApplianceParts } from '../../../appliance/appliance-parts.ts'
import { answerPortStatistics } from '../../../appliance/system-status/port-statistics.ts'
import { PORT_COUNTERS } from '../../support/devices/status-members.ts'

test('a captured port has every counter, exactly; another only what the kernel counts', async () => {
  // In the order of the API, which is that of the engine.
  const sizeClasses = Array.from({ length: 12 }, (_, index) => 2n ** 60n + BigInt(index))
  const account = { storedPackets: 4n, filteredPackets: 3n, ringDrops: 2n, diskDrops: 1n, pendingPackets: 0n }
  const captured = { port: 1, seenPackets: 2n ** 63n + 1n, seenBytes: 1_000n, sizeClasses, ...account }
  const sensors = {
    capture: { value: { counts: { ports: [captured] } } },
    links: { value: new Map([['cap2', { name: 'eth2', packets: 7, bytes: 900 }]]) },
  }
  const ctx = { state: {}, querystring: '', set: () => undefined, type: '', body: '' }
  await answerPortStatistics(ctx as unknown as ApplianceContext, { sensors } as unknown as ApplianceParts)
  const answer = JSON.parse(ctx.body) as Record<string, Record<string, number | string>>
  const { cap1 = {}, cap2 = {}, cap0 = {} } = answer
  const classes = Object.keys(PORT_COUNTERS).filter((name) => name.startsWith('Pkt_'))
  assert.equal(classes.length, sizeClasses.length)
  assert.deepEqual(
    classes.map((name) => cap1[`${name}Exact`]),
    sizeClasses.map(String),
  )
  assert.deepEqual([cap1.PktExact, cap1.Byte], [String(2n ** 63n + 1n), 1_000])
  assert.deepEqual([cap2.Pkt, cap2.Byte, cap2.Pkt_64], [7, 900, 0])
  assert.deepEqual([cap0.Pkt, cap0.Byte, cap0.Pkt_64], [0, 0, 0])
  const unavailable = answer.unavailable as unknown as string[]
  assert.deepEqual(
    unavailable.filter((name) => name.startsWith('cap1.') || name.startsWith('cap2.')),
    classes.map((name) => `cap2.${name}`),
  )
  assert.ok(unavailable.includes('cap0.Pkt'))
  const { cap1: told, ...others } = answer.accounting as unknown as Record<string, Record<string, unknown>>
  assert.deepEqual(others, {})
  assert.deepEqual(
    [told?.SeenExact, told?.Stored, told?.Filtered, told?.DropRing, told?.DropDisk, told?.Pending],
    [String(2n ** 63n + 1n), 4, 3, 2, 1, 0],
  )
})
