/** Checks whether packet timestamps are cheap to take and correct. */
import { join } from 'node:path'
import { type ClockReadings, clockReader } from '../machine/clock-sync-sensor.ts'
import { readText } from '../machine/kernel-files.ts'
import { type Finding, FindingList } from './finding.ts'

/** These are read without entering the kernel, in tens of nanoseconds; others take microseconds per packet. */
const QUICK_SOURCES = ['tsc', 'kvm-clock', 'hyperv_clocksource_tsc_page', 'arch_sys_counter']

/** `sys` is the path of /sys. */
export async function checkClock(sys: string, signal: AbortSignal): Promise<readonly Finding[]> {
  const list = new FindingList('clock')
  const folder = join(sys, 'devices/system/clocksource/clocksource0')
  const source = (await readText(join(folder, 'current_clocksource'), signal)) ?? 'unknown'
  const available = (await readText(join(folder, 'available_clocksource'), signal)) ?? ''
  if (QUICK_SOURCES.includes(source)) list.ok('source', source)
  else {
    const better = QUICK_SOURCES.find((name) => available.split(' ').includes(name))
    list.warn('source', {
      detail: `${source} is slow to read`,
      fix:
        better === undefined
          ? 'the kernel offers no faster one; search the kernel log for tsc'
          : `echo ${better} > ${join(folder, 'current_clocksource')}`,
    })
  }
  checkSync(list, await clockReader()(signal))
  return list.findings
}

function checkSync(list: FindingList, { ntp, grandmaster }: ClockReadings): void {
  const synced = [
    ...(grandmaster?.isSynced === true ? [`PTP, master ${grandmaster.master}`] : []),
    ...(ntp?.isSynced === true ? [`NTP${ntp.master === '' ? '' : `, source ${ntp.master}`}`] : []),
  ]
  if (synced.length > 0) list.ok('synchronised', synced.join('; '))
  else {
    list.warn('synchronised', {
      detail:
        'the clock is not synchronized by PTP or NTP: packets of several devices cannot be put in order',
      fix: 'apt-get install chrony, or linuxptp for PTP',
    })
  }
}
