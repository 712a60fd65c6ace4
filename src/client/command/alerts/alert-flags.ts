/** `--alert FILE` of `capfleet get` and `capfleet export create`: its flags, and the alerts that they give. */
import type { Command } from 'commander'
import { PIVOT_MARGINS, type PivotMargins } from '../../../shared/query/flow/pivot.ts'
import { visible } from '../../../shared/query/query-parameters.ts'
import { resolveTimeZone } from '../../../shared/query/time/time-zone.ts'
import { ClientFailure, usageFailure } from '../../client-failure.ts'
import type { QueryPairs } from '../../gateway-client.ts'
import { AlertFile, type AlertResult, counted, type MergedAlert, shownFile } from './alert-file.ts'

export interface AlertOptions {
  readonly alert?: string
  readonly before?: string
  readonly after?: string
  readonly alertsMax?: string
}

const FROM_AN_ALERT = 'From an alert:'
const ALERTS_MAX = 100

const WHAT: Readonly<Record<AlertResult, { readonly whose: string; readonly note: string }>> = {
  download: { whose: 'the packets of', note: 'several alerts need -o <folder>' },
  export: { whose: 'an export for', note: 'one that was ordered in the last 24 hours is not ordered again' },
}

/** The flags come last in the help, and so do those that are added afterwards. */
export function addAlertFlags(command: Command, result: AlertResult): void {
  const { whose, note } = WHAT[result]
  command
    .optionsGroup(FROM_AN_ALERT)
    .option(
      '--alert <file>',
      `${whose} each alert in this file: Suricata's eve.json, or conn.log, notice.log and others of Zeek in JSON; ` +
        `both directions, also with VLAN tags; "-": standard input; ${note}`,
    )
    .option('--before <time>', `how much before the alert or its flow; default: ${PIVOT_MARGINS.before}`)
    .option('--after <time>', `how much after it; default: ${PIVOT_MARGINS.after}`)
    .option(
      '--alerts-max <count>',
      `how many ${result}s the file may need; overlapping alerts of a conversation share one; default: ${ALERTS_MAX}`,
    )
}

/** Flags that have no effect without --alert are mistakes. */
export function refuseAlertFlags({ before, after, alertsMax }: AlertOptions): void {
  if (before !== undefined)
    throw usageFailure('--before belongs to --alert; the end of a time range is --end')
  if (after !== undefined)
    throw usageFailure('--after belongs to --alert; the start of a time range is --begin')
  if (alertsMax !== undefined) throw usageFailure('--alerts-max belongs to --alert')
}

export interface GivenAlerts {
  readonly alerts: readonly MergedAlert[]
  readonly margins: PivotMargins
  /** Parameters that all of them have. */
  readonly common: QueryPairs
  /** Fails with a ClientFailure if lines could not be read: to be called when the others are done. */
  refuseMistakes(): void
}

interface AlertsQuestion {
  readonly result: AlertResult
  readonly capture: string | undefined
  readonly query: QueryPairs
  /** Prints what users should know. */
  readonly say: (text: string) => void
}

/** Parameters that the alerts determine, and the flags that give them. */
const DETERMINED: Readonly<Record<string, string>> = {
  TSBegin: '--begin and --last',
  TSEnd: '--end',
  TSUnit: '--unit',
  Start: '--start',
  Stop: '--stop',
  FilterBPF: '--bpf',
  Follow: '--follow',
}

/** Reads the file. Fails with a ClientFailure if it has no alert, or flags contradict each other. */
export async function readAlerts(
  options: AlertOptions & { readonly alert: string },
  { result, capture, query, say }: AlertsQuestion,
): Promise<GivenAlerts> {
  if (capture !== undefined)
    throw usageFailure('--alert finds packets by time; leave out the name of the capture')
  const determined = query.find(([name]) => name in DETERMINED)
  if (determined !== undefined)
    throw usageFailure(
      `--alert makes the time range and the filter itself; leave out ${DETERMINED[determined[0]]}`,
    )
  const margins = {
    before: options.before ?? PIVOT_MARGINS.before,
    after: options.after ?? PIVOT_MARGINS.after,
  }
  const file = await AlertFile.read(options.alert, {
    ...margins,
    result,
    alertsMax: countOf(options.alertsMax),
    zone: zoneOf(query),
  })
  const name = shownFile(options.alert)
  for (const note of file.notes) say(`${name}: ${visible(note)}`)
  if (file.alerts.length === 0) throw usageFailure(`${name} has no alert with an address and a time`)
  return {
    alerts: file.alerts,
    margins,
    common: query.filter(([parameter]) => parameter !== 'TSZone'),
    refuseMistakes: () => {
      if (file.mistakes > 0)
        throw new ClientFailure(
          'incomplete',
          `${counted(file.mistakes, 'line')} of ${name} could not be read; the packets of the others are complete`,
          { code: 'bad-alerts' },
        )
    },
  }
}

function countOf(text: string | undefined): number {
  if (text === undefined) return ALERTS_MAX
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw usageFailure(`--alerts-max must be a number from 1 to 999999, got ${JSON.stringify(text)}`)
}

function zoneOf(query: QueryPairs): string | undefined {
  const [, zone] = query.find(([name]) => name === 'TSZone') ?? []
  return zone === undefined ? undefined : resolveTimeZone(zone, 'TSZone')
}
