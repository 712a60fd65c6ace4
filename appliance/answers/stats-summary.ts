/** /sysmaster/stats_summary: one flat object. */

import { hostname } from 'node:os'
import { takeNoParameters } from '../../src/shared/contract/request-parameters.ts'
import { ctime } from '../../src/shared/query/time/ctime.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { nowNs } from '../appliance-parts.ts'
import type { ClockSync } from '../machine/clock-sync-sensor.ts'
import { DISK_IDS } from '../machine/disk-names.ts'
import { CAPTURE_LINK_IDS } from '../machine/link-sensor.ts'
import { smartProblems } from '../system-status/disk-groups.ts'
import { toExactJson } from '../system-status/exact-json.ts'
import { droppedPackets, sumPortCounters } from '../system-status/port-counters.ts'
import { GroupBuilder } from '../system-status/status-group.ts'
import { captureOverflow } from './capture-overflow.ts'
import { uptimeText } from './uptime-text.ts'

const NANOS_PER_MILLISECOND = 1_000_000n
const NANOS_PER_DAY = 86_400_000_000_000

export async function answerStatsSummary(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  takeNoParameters(ctx)
  await parts.sensors.stored.refresh()
  const group = new GroupBuilder()
  addPackets(group, parts)
  addErrors(group, parts)
  addDisks(group, parts)
  addLinks(group, parts)
  addClocks(group, parts)
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'json'
  ctx.body = toExactJson(group.build())
}

function addPackets(group: GroupBuilder, { sensors, config }: ApplianceParts): void {
  const counters = sumPortCounters(sensors.links.value)
  const counts = sensors.capture.value?.counts
  const stored = sensors.stored.value
  const oldestNs = stored?.oldestNs ?? 0n
  const ageNs = oldestNs === 0n ? 0 : Number(nowNs() - oldestNs)
  const uptime = sensors.host.value?.uptimeSeconds
  group
    .read('uptime', uptime === undefined ? undefined : uptimeText(uptime), '')
    .read('uptime_s', uptime === undefined ? undefined : Math.floor(uptime), 0)
    .set('hostname', hostname())
    .read('packets_received', counters?.received, 0)
    .read('packets_dropped', droppedPackets(sensors.capture.value, counters), 0)
    .read('packets_errors', counters?.errors, 0)
    .read('packets_captured', counts?.packets, 0)
    // The gateway reads this: nothing older can be downloaded. "0" and "" = nothing is stored.
    .set(
      'packets_oldest',
      oldestNs === 0n ? '' : ctime(new Date(Number(oldestNs / NANOS_PER_MILLISECOND)), config.timeZone),
    )
    .set('packets_oldest_ts', String(oldestNs))
    .set('capture_days', Math.max(0, ageNs) / NANOS_PER_DAY)
    .read('bytes_captured', counts?.bytes, 0)
    .set('bytes_pending', counts?.pendingBytes ?? 0)
    .read('bytes_disk', stored?.bytes, 0)
    .set('bytes_overflow', captureOverflow(counts).bytes)
}

function addErrors(group: GroupBuilder, { sensors, downloads }: ApplianceParts): void {
  const health = [...(sensors.diskHealth.value?.values() ?? [])]
  const smartErrors = health.reduce((sum, disk) => sum + smartProblems(disk), 0)
  group
    .read('smart_errors', health.length === 0 ? undefined : smartErrors, 0)
    .read('raid_errors', undefined, 0)
    .read('raid_status', undefined, '')
    .set('stream_errors', downloads.failures)
    .set('chunk_errors', downloads.corruptBlocks)
    .read('ecc_errors', sensors.host.value?.eccErrors, 0)
}

function addDisks(group: GroupBuilder, { sensors }: ApplianceParts): void {
  for (const id of DISK_IDS) {
    const disk = sensors.disks.value?.get(id)
    const health = disk && sensors.diskHealth.value?.get(disk.name)
    group
      .read(`disk_${id}_valid`, disk?.isPresent, false)
      .read(`disk_${id}_serial`, health?.serial || disk?.serial || undefined, '')
      .read(`disk_${id}_desc`, health?.model || disk?.model || undefined, '')
      .read(`disk_${id}_smart`, health && smartProblems(health), 0)
      .read(`disk_${id}_temp`, health?.celsius, 0)
  }
}

function addLinks(group: GroupBuilder, { sensors }: ApplianceParts): void {
  for (const id of CAPTURE_LINK_IDS) {
    const link = sensors.links.value?.get(id)
    group
      .read(`${id}_link`, link?.isUp, false)
      .read(`${id}_link_uptime`, link?.upSeconds === undefined ? undefined : uptimeText(link.upSeconds), '')
      .read(`${id}_link_uptime_s`, link?.upSeconds, 0)
      .read(`${id}_speed`, link?.speedMbps, 0)
  }
}

function addClocks(group: GroupBuilder, { sensors }: ApplianceParts): void {
  const { ntp, grandmaster } = sensors.clocks.value ?? {}
  // The clocks in between are those of special capture hardware.
  addClock(group, 'clock_gm', grandmaster)
  for (const name of ['clock_sys', 'clock_isys', 'clock_pps']) addClock(group, name, undefined)
  addClock(group, 'clock_ntp', ntp)
}

function addClock(group: GroupBuilder, name: string, clock: ClockSync | undefined): void {
  group
    .read(`${name}_sync`, clock?.isSynced, false)
    .read(`${name}_offset_mean`, clock?.offsetNs, 0)
    .read(`${name}_offset_stddev`, clock?.deviationNs, 0)
    .read(`${name}_uptime`, clock?.syncedSeconds, 0)
}
