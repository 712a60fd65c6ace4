import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { wrongMembers } from '../../support/devices/status-members.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { startTempAppliance } from '../../support/processes/temp-appliance.ts'

test('the summary is flat, has every member once, and includes the retention edge', async () => {
  await using appliance = await startTempAppliance()
  const empty = (await appliance.get('/sysmaster/stats_summary')).json()
  assert.deepEqual([empty.packets_oldest_ts, empty.packets_oldest, empty.capture_days], ['0', '', 0])
  const file = join(appliance.folder, 'a.pcap')
  const startNs = BigInt(Date.now() - 86_400_000) * 1_000_000n
  await writeFile(file, makePcap([makePacket(startNs, 'a', 60), makePacket(startNs + 9n, 'b', 60)]))
  const { bytes } = await appliance.importFiles('a', file)
  const answer = await appliance.get('/sysmaster/stats_summary')
  const summary = answer.json()
  assert.equal(summary.packets_oldest_ts, String(startNs))
  assert.match(String(summary.packets_oldest), /^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$/)
  assert.ok(Math.abs(Number(summary.capture_days) - 1) < 0.01)
  assert.deepEqual([summary.bytes_disk, summary.hostname], [Number(bytes), hostname()])
  const keys = [...answer.body.toString().matchAll(/"([a-z_0-9]+)":/g)].map(([, key]) => key)
  assert.equal(new Set(keys).size, keys.length)
  const { unavailable, ...members } = summary
  assert.ok(Object.values(members).every((value) => typeof value !== 'object'))
  for (const name of unavailable as string[]) assert.ok([0, false, ''].includes(members[name] as never), name)
})

test('the summary has the members of disks, links and clocks', async () => {
  await using appliance = await startTempAppliance()
  const summary = (await appliance.get('/sysmaster/stats_summary')).json()
  const numbers = ['uptime_s', 'packets_received', 'packets_dropped', 'packets_errors', 'packets_captured']
  const members = [
    ...[...numbers, 'bytes_captured', 'bytes_pending', 'bytes_disk', 'bytes_overflow'].map(integer),
    ...['smart', 'raid', 'stream', 'chunk', 'ecc'].map((kind) => integer(`${kind}_errors`)),
    ...['os0', 'ssd0', 'ssd7', 'par0'].flatMap((disk) => [
      [`disk_${disk}_valid`, 'boolean'] as const,
      [`disk_${disk}_serial`, 'string'] as const,
      [`disk_${disk}_desc`, 'string'] as const,
      integer(`disk_${disk}_smart`),
      [`disk_${disk}_temp`, 'number'] as const,
    ]),
    ...['cap0', 'cap7'].flatMap((port) => [
      [`${port}_link`, 'boolean'] as const,
      [`${port}_link_uptime`, 'string'] as const,
      integer(`${port}_link_uptime_s`),
      integer(`${port}_speed`),
    ]),
    ...['gm', 'sys', 'isys', 'pps', 'ntp'].flatMap((clock) => [
      [`clock_${clock}_sync`, 'boolean'] as const,
      [`clock_${clock}_offset_mean`, 'number'] as const,
      [`clock_${clock}_offset_stddev`, 'number'] as const,
      integer(`clock_${clock}_uptime`),
    ]),
    ['raid_status', 'string'] as const,
    ['uptime', 'string'] as const,
  ]
  assert.deepEqual(wrongMembers(summary, Object.fromEntries(members)), [])
})

function integer(name: string): readonly [string, 'integer'] {
  return [name, 'integer']
}
