/** The output of the harness: the measure, the prices, and a row for each attack. */

import type { Quiet } from './attack-meter.ts'
import type { HonestKind } from './honest-user.ts'
import type { Target } from './stand.ts'
import {
  failuresOf,
  type Limits,
  type Measured,
  type Prices,
  p99Of,
  type StatedWait,
  type Verdict,
} from './verdict.ts'

export interface AttackResult {
  readonly name: string
  readonly target: Target
  readonly quiet: Quiet
  readonly measured: Measured
  readonly stated: StatedWait | undefined
  readonly verdict: Verdict
}

const COLUMNS = [
  'attack',
  'target',
  'connections',
  'KiB sent',
  'KiB received',
  's',
  'its CPU s',
  'our CPU s',
  'factor',
  'peak MiB',
  'stay MiB',
  'p99 ms livez',
  'control',
  'login',
  'filtered',
  'events',
  'failed',
  'foreign cores',
  'verdict',
] as const

export function measureInWords({ factorMax, slowerMax, p99Ms, stayMib }: Limits): string {
  return [
    'allowed = bytes (and 320 a connection) x price of a byte + seconds of streams (4 at most) x price of a stream second',
    'factor = our CPU seconds / allowed; prices are those of honest use in this run; "a -> b" is quiet -> attacked',
    `limits: factor ${factorMax}; p99 of others ${slowerMax} times the quiet one or ${p99Ms} ms; ${stayMib} MiB stay; no request fails`,
    'foreign cores are what other programs of this machine took: with half a core or more the p99 say little',
  ].join('\n')
}

export function pricesInWords(target: string, { byte, streamSecond }: Prices): string {
  return `${target}: a byte costs ${(byte * 1e6).toFixed(2)} us, a stream second ${streamSecond.toFixed(2)} s`
}

export function headingLine(): string {
  return COLUMNS.join(' | ')
}

export function resultLine({ name, target, quiet, measured, stated, verdict }: AttackResult): string {
  const { spending, cpuSeconds, peakMib, stayMib, felt } = measured
  const kib = (bytes: number): string => (bytes / 1024).toFixed(0)
  const p99 = (kind: HonestKind): string =>
    `${p99Of(quiet.felt, kind).toFixed(0)} -> ${p99Of(felt, kind).toFixed(0)}`
  return [
    name,
    target,
    spending.connections,
    kib(spending.sentBytes),
    kib(spending.receivedBytes),
    spending.seconds.toFixed(1),
    spending.cpuSeconds.toFixed(2),
    cpuSeconds.toFixed(2),
    verdict.factor.toFixed(1),
    peakMib.toFixed(0),
    stayMib.toFixed(0),
    p99('livez'),
    p99('control'),
    p99('login'),
    p99('filtered'),
    p99('events'),
    failuresOf(felt).length,
    measured.foreignCores.toFixed(1),
    `${verdict.broken.length === 0 ? 'harmless' : verdict.broken.join(', ')}${statedInWords(stated)}`,
  ].join(' | ')
}

function statedInWords(stated: StatedWait | undefined): string {
  if (stated === undefined) return ''
  return ` (${stated.kind} may wait ${stated.waitMs / 1_000} s more: ${stated.reason})`
}

/** One line of JSON with everything except the individual latencies. */
export function resultJson({ name, target, quiet, measured, verdict }: AttackResult): string {
  const { felt, ...rest } = measured
  const p99 = Object.fromEntries(
    (Object.keys(felt) as HonestKind[]).map((kind) => [
      kind,
      { quietMs: p99Of(quiet.felt, kind), attackedMs: p99Of(felt, kind) },
    ]),
  )
  return JSON.stringify({
    name,
    target,
    prices: quiet.prices,
    ...rest,
    p99,
    failures: failuresOf(felt),
    ...verdict,
  })
}
