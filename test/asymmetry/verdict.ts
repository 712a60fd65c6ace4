/**
 * THE MEASURE: what an attacker spends compared with what we spend.
 *
 * An attacker's bytes are converted to processor time by the cost of honest use on the same machine in the same run:
 *
 *   price of a byte          = our CPU seconds per byte of plain authenticated control calls, one after another
 *                              over one connection, requests and answers counted together
 *   price of a stream second = our CPU seconds per second of one plain download that is read at full speed
 *
 *   allowed = bytes x price of a byte + stream seconds x price of a stream second, at least 0.02 s
 *   factor  = our CPU seconds / allowed
 *
 * The bytes are those sent and received, plus 320 for each connection: the headers of the packets that open and close
 * it. Costs below 0.02 s (2 s with the factor's limit) cannot be distinguished from zero. A second counts as a stream
 * second only while a download's answer with status 200 is in progress. A device gives such an answer a stream, and a
 * stream may keep a core busy without sending a byte, for example if its filter matches nothing. At most four count at
 * a time, because a device has no more. A mere connection buys nothing: otherwise a thousand idle sockets would buy the
 * whole machine.
 *
 * Our CPU seconds are those of the attacked program, of the programs behind it (a gateway's devices, their recorders,
 * its Redis) and of all their children (filter compilers), from the first byte of the attack until they come to rest.
 * The cost of serving the honest user is subtracted. Memory is the resident memory of the attacked program and its
 * children, above the level just before the attack: its peak, and what is left some time after the end.
 */
import type { Spending } from './attack.ts'
import { type HonestKind, type HonestReport, quantile } from './honest-user.ts'

/** CPU seconds. */
export interface Prices {
  readonly byte: number
  readonly streamSecond: number
}

export interface Limits {
  /** How many times the cost of honest use with the same bytes and streams an attack may cost us. */
  readonly factorMax: number
  /** How many times longer other users may wait than on a quiet system ... */
  readonly slowerMax: number
  /** ... or this long, whichever is more. */
  readonly p99Ms: number
  /** Above the quiet level, after the pause that follows the attack. */
  readonly stayMib: number
  /** Above the quiet level, at any time. */
  readonly peakMib: number
}

export const LIMITS: Limits = {
  factorMax: 100,
  slowerMax: 3,
  p99Ms: 250,
  // V8's space for young objects alone grows by 48 MiB when it is first needed, and shrinks late.
  stayMib: 64,
  peakMib: 1_024,
}

/** Limits for a busy machine, and for attacks too short for figures. */
export const LIMITS_OF_SMALL_FORM: Limits = {
  factorMax: Number.POSITIVE_INFINITY,
  slowerMax: Number.POSITIVE_INFINITY,
  p99Ms: Number.POSITIVE_INFINITY,
  stayMib: Number.POSITIVE_INFINITY,
  peakMib: LIMITS.peakMib,
}

/** A wait during an attack that is documented: the limit of this kind of request is longer by it. */
export interface StatedWait {
  readonly kind: HonestKind
  readonly waitMs: number
  /** The setting that has it, and why. */
  readonly reason: string
}

/** The observations for one attack on one target. */
export interface Measured {
  readonly spending: Spending
  /** Without what serving the honest user takes. */
  readonly cpuSeconds: number
  readonly peakMib: number
  readonly stayMib: number
  readonly felt: HonestReport
  /** How many processor cores other programs of this machine used meanwhile; if many, durations do not count. */
  readonly foreignCores: number
  /** The attacked program has ended. */
  readonly isDead: boolean
  /** The programs were still computing when they were given up. */
  readonly isRestless: boolean
}

export interface Verdict {
  readonly allowedSeconds: number
  readonly factor: number
  /** Descriptions of the exceeded limits; an empty list means that the attack is harmless. */
  readonly broken: readonly string[]
}

const STREAMS_OF_A_DEVICE = 4
/** Eight packets with the headers of IP and TCP. */
const CONNECTION_BYTES = 320
/** The cost of serving the honest user is known only to some tenths of a second. */
const ALLOWED_MIN_S = 0.02

export interface Judging {
  readonly prices: Prices
  readonly limits: Limits
  readonly stated?: StatedWait | undefined
}

export function judge(measured: Measured, quiet: HonestReport, { prices, limits, stated }: Judging): Verdict {
  const { spending, cpuSeconds, peakMib, stayMib, felt } = measured
  const streamSeconds = Math.min(spending.streamSeconds, STREAMS_OF_A_DEVICE * spending.seconds)
  const bytes = spending.sentBytes + spending.receivedBytes + spending.connections * CONNECTION_BYTES
  const allowedSeconds = Math.max(ALLOWED_MIN_S, bytes * prices.byte + streamSeconds * prices.streamSecond)
  const factor = cpuSeconds / allowedSeconds
  const broken: string[] = []
  // Whatever else was observed, it was not caused by the attack.
  if (spending.connections === 0 && spending.sentBytes === 0) broken.push('the attack did not happen')
  if (measured.isDead) broken.push('the program ended')
  if (measured.isRestless) broken.push('the program came to no rest')
  if (factor > limits.factorMax) broken.push(`factor above ${limits.factorMax}`)
  if (peakMib > limits.peakMib) broken.push(`more than ${limits.peakMib} MiB`)
  if (stayMib > limits.stayMib) broken.push(`more than ${limits.stayMib} MiB stay`)
  for (const kind of Object.keys(felt) as HonestKind[]) {
    const statedMs = stated?.kind === kind ? stated.waitMs : 0
    const limitMs = Math.max(limits.slowerMax * p99Of(quiet, kind), limits.p99Ms) + statedMs
    if (p99Of(felt, kind) > limitMs) broken.push(`${kind} slower than ${Math.round(limitMs)} ms`)
    const { failures } = felt[kind]
    if (failures.length > 0) broken.push(`${failures.length} times no ${kind}`)
  }
  return { allowedSeconds, factor, broken }
}

/** Milliseconds. */
export function p99Of(report: HonestReport, kind: HonestKind): number {
  return quantile(report[kind].latenciesMs, 0.99)
}

export function failuresOf(report: HonestReport): readonly string[] {
  return Object.values(report).flatMap(({ failures }) => failures)
}
