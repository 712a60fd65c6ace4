/** How well the clock is synchronized: NTP by chrony or timedatectl, PTP by linuxptp's pmc, if they are running. */
import { runTool } from './run-tool.ts'

export interface ClockSync {
  readonly isSynced: boolean
  /** Name or address of the master; empty when unknown. */
  readonly master: string
  /** How many nanoseconds the clock is ahead of its master; undefined if the daemon does not report it. */
  readonly offsetNs: number | undefined
  /** Typical deviation of that offset. */
  readonly deviationNs: number | undefined
  /** 0 = not synced. Counted from when this program first saw it synced. */
  readonly syncedSeconds: number
}

export interface ClockReadings {
  readonly ntp: ClockSync | undefined
  /** The PTP grandmaster as the port of this device sees it. */
  readonly grandmaster: ClockSync | undefined
}

type Found = Omit<ClockSync, 'syncedSeconds'>

/** Remembers since when the clocks have been synced. */
export function clockReader(): (signal: AbortSignal) => Promise<ClockReadings> {
  const ntpUptime = syncedTimer()
  const grandmasterUptime = syncedTimer()
  return async (signal) => {
    const [chrony, pmc] = await Promise.all([
      runTool('chronyc', { args: ['-c', 'tracking'], signal }),
      runTool('pmc', { args: ['-u', '-b', '0', 'GET TIME_STATUS_NP'], signal }),
    ])
    const ntp = parseChrony(chrony) ?? (await readTimedate(signal))
    return { ntp: ntpUptime(ntp), grandmaster: grandmasterUptime(parsePmc(pmc)) }
  }
}

const NANOS_PER_SECOND = 1e9

/** One line: id, name, stratum, reference time, offset of the system, last offset, RMS offset ... status. */
export function parseChrony(output = ''): Found | undefined {
  const fields = output.trim().split(',')
  if (fields.length < 14) return undefined
  return {
    isSynced: fields[13] !== 'Not synchronised',
    master: fields[1] ?? '',
    // chrony reports how far the system clock is behind NTP time.
    offsetNs: -Number(fields[4]) * NANOS_PER_SECOND,
    deviationNs: Number(fields[6]) * NANOS_PER_SECOND,
  }
}

/** Lines of the form "name value"; without ptp4l there is only a line that repeats the request. */
export function parsePmc(output = ''): Found | undefined {
  const value = (name: string): string | undefined =>
    new RegExp(`^\\s*${name}\\s+(\\S+)`, 'm').exec(output)?.[1]
  const offset = value('master_offset')
  if (offset === undefined) return undefined
  return {
    isSynced: value('gmPresent') === 'true',
    master: value('gmIdentity') ?? '',
    offsetNs: Number(offset),
    deviationNs: undefined,
  }
}

async function readTimedate(signal: AbortSignal): Promise<Found | undefined> {
  const args = ['show', '--property=NTPSynchronized', '--value']
  const answer = (await runTool('timedatectl', { args, signal }))?.trim()
  if (answer !== 'yes' && answer !== 'no') return undefined
  return { isSynced: answer === 'yes', master: '', offsetNs: undefined, deviationNs: undefined }
}

function syncedTimer(): (found: Found | undefined) => ClockSync | undefined {
  let sinceMs: number | undefined
  return (found) => {
    sinceMs = found?.isSynced === true ? (sinceMs ?? performance.now()) : undefined
    if (found === undefined) return undefined
    const syncedSeconds = sinceMs === undefined ? 0 : Math.floor((performance.now() - sinceMs) / 1000)
    return { ...found, syncedSeconds }
  }
}
