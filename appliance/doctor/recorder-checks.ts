/** Checks the running recorder, according to its own report. */
import type { CaptureReport } from '../link/capture-report.ts'
import type { ClockHold } from '../store/clock-record.ts'
import { type Finding, FindingList } from './finding.ts'

/** `report` is undefined if no recorder answers. */
export function checkRecorder(report: CaptureReport | undefined): readonly Finding[] {
  const list = new FindingList('recorder')
  if (report === undefined) {
    list.warn('running', {
      detail: 'no recorder runs for this store',
      fix: 'capfleet recorder --config FILE',
    })
    return list.findings
  }
  const { state, name, message, counts } = report
  if (state === 'error')
    list.problem('running', { detail: message, fix: 'fix the cause, then call capture_start' })
  else list.ok('running', name === '' ? state : `${state}: ${name}`)
  checkDrops(list, counts)
  checkClock(list, report.clockHold)
  if (counts.diskErrors > 0n) {
    list.problem('disk', {
      detail: `${counts.diskErrors} writes failed: ${counts.diskMessage}`,
      fix: 'check the kernel log for disk errors',
    })
  }
  return list.findings
}

function checkClock(list: FindingList, hold: ClockHold): void {
  if (hold === '') {
    list.ok('clock', 'trusted')
    return
  }
  const what =
    hold === 'clock-stepped'
      ? 'the clock was set'
      : 'the machine was started with a clock that cannot be checked'
  list.warn('clock', {
    detail: `${what}, so nothing is removed by age (${hold})`,
    fix: 'synchronize the clock with NTP or PTP, or check it with date, then run capfleet store trust-clock --store FOLDER',
  })
}

function checkDrops(list: FindingList, { drops, ringDrops, diskDrops }: CaptureReport['counts']): void {
  if (drops === 0n) {
    list.ok('drops', 'none in this capture')
    return
  }
  const isRing = ringDrops >= diskDrops
  list.problem('drops', {
    detail: `${drops} packets in this capture: ${ringDrops} before the capture threads, ${diskDrops} before the disk`,
    fix: isRing
      ? 'more threads or a larger ringBytes of the port'
      : 'a faster disk, or a larger queueBytes for bursts',
  })
}
