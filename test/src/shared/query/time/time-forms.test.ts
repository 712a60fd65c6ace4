/** Each form of the table is read, and what is printed in it comes back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  isRelativeTime,
  parseQueryTime,
  TIME_LIMIT_NS,
} from '../../../../../src/shared/query/time/query-time.ts'
import { TIME_FORM_EXAMPLES, TIME_FORMS } from '../../../../../src/shared/query/time/time-forms.ts'

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const NS_PER_S = 1_000_000_000n
const NOW_NS = 1_795_000_000_123_456_789n
const ZONE = 'Asia/Kathmandu'
/** Minutes by which that zone is ahead of UTC; it knows no summer time. */
const ZONE_MINUTES = 345n

const read = (text: string, beginNs?: bigint): bigint =>
  parseQueryTime(text, {
    parameter: 'TSBegin',
    unit: undefined,
    zone: ZONE,
    nowNs: NOW_NS,
    beginNs,
    isEnd: beginNs !== undefined,
  }).ns

test('every example of the table is read', () => {
  for (const { examples } of Object.values(TIME_FORMS))
    for (const text of examples) assert.ok(read(text, NOW_NS) > 0n, text)
  for (const text of TIME_FORM_EXAMPLES.split(', ')) assert.ok(read(text, NOW_NS) > 0n, text)
})

/** ISO text of an instant, as a clock shows it that is so far ahead of UTC. */
function isoAhead(ns: bigint, minutes: bigint): string {
  const seconds = ns / NS_PER_S + minutes * 60n
  const fraction = String(ns % NS_PER_S).padStart(9, '0')
  return `${new Date(Number(seconds) * 1_000).toISOString().slice(0, 19)}.${fraction}`
}

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')
const DAY_NS = 86_400n * NS_PER_S

/** For each form: how an instant is printed in it, and the unit of what it can express. */
const PRINTED: Readonly<
  Record<keyof typeof TIME_FORMS, { readonly unitNs: bigint; readonly print: (ns: bigint) => string }>
> = {
  epoch: { unitNs: 1_000_000n, print: (ns) => String(ns / 1_000_000n) },
  epochFraction: {
    unitNs: 1n,
    print: (ns) => `${ns / NS_PER_S}.${String(ns % NS_PER_S).padStart(9, '0')}`,
  },
  epochSeconds: { unitNs: NS_PER_S, print: (ns) => `@${ns / NS_PER_S}` },
  compact: {
    unitNs: NS_PER_S,
    print: (ns) => isoAhead(ns, ZONE_MINUTES).slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '_'),
  },
  zoned: { unitNs: 1n, print: (ns) => `${isoAhead(ns, -330n)}-0530` },
  local: { unitNs: 1n, print: (ns) => isoAhead(ns, ZONE_MINUTES).replace('T', ' ') },
  date: { unitNs: DAY_NS, print: (ns) => isoAhead(ns, ZONE_MINUTES).slice(0, 10) },
  namedMonth: {
    unitNs: 1n,
    print: (ns) => {
      const [date = '', time = ''] = isoAhead(ns, 0n).split('T')
      const [year, month, day] = date.split('-')
      return `${MONTHS[Number(month) - 1]} ${String(Number(day)).padStart(2)}, ${year} ${time} UTC`
    },
  },
  beforeNow: { unitNs: NS_PER_S, print: (ns) => `now-${(NOW_NS - ns) / NS_PER_S}s` },
  afterBegin: { unitNs: NS_PER_S, print: (ns) => `+${(ns - BEGIN_NS) / NS_PER_S}s` },
  day: { unitNs: DAY_NS, print: (ns) => (ns === dayOf(NOW_NS) ? 'today' : 'yesterday') },
}

const BEGIN_NS = 631_152_000n * NS_PER_S
/** From the second day on: rounding down must not leave the range. */
const EVERY_INSTANT = { min: BEGIN_NS + DAY_NS, max: TIME_LIMIT_NS - DAY_NS }
/** Lengths of time have at most nine digits. */
const LENGTH_NS = 999_999_998n * NS_PER_S
const RANGES: Partial<Record<keyof typeof TIME_FORMS, typeof EVERY_INSTANT>> = {
  beforeNow: { min: NOW_NS - LENGTH_NS, max: NOW_NS },
  afterBegin: { min: BEGIN_NS, max: BEGIN_NS + LENGTH_NS },
}

/** The start of the day in the zone. */
function dayOf(ns: bigint): bigint {
  const aheadNs = ZONE_MINUTES * 60n * NS_PER_S
  return ((ns + aheadNs) / DAY_NS) * DAY_NS - aheadNs
}

/** The latest instant up to `ns` that the form can express. */
function expressible(form: keyof typeof TIME_FORMS, ns: bigint): bigint {
  const { unitNs } = PRINTED[form]
  if (form === 'day') return dayOf(NOW_NS) - (ns % 2n) * DAY_NS
  if (unitNs === DAY_NS) return dayOf(ns)
  const fromNs = form === 'beforeNow' ? NOW_NS % NS_PER_S : 0n
  return ((ns - fromNs) / unitNs) * unitNs + fromNs
}

for (const form of Object.keys(TIME_FORMS) as (keyof typeof TIME_FORMS)[]) {
  test(`what is printed as ${form} comes back to the nanosecond`, () => {
    const instants = fc.bigInt(RANGES[form] ?? EVERY_INSTANT)
    fc.assert(
      fc.property(instants, (anyNs) => {
        const ns = expressible(form, anyNs)
        const text = PRINTED[form].print(ns)
        assert.equal(read(text, BEGIN_NS), ns, text)
      }),
      { seed: SEED, numRuns: 300 },
    )
  })
}

test('any text is a time within PCAP or refused with its parameter', () => {
  const characters = fc.string({ unit: fc.constantFrom(...'0123456789-+:.,_ @/TZnowmsdhUCGyaetr') })
  const changed = fc
    .tuple(
      fc.constantFrom(...Object.values(TIME_FORMS).flatMap(({ examples }) => [...examples])),
      fc.nat(),
      characters,
    )
    .map(
      ([text, at, more]) =>
        text.slice(0, at % text.length) + more.slice(0, 3) + text.slice((at % text.length) + 1),
    )
  fc.assert(
    fc.property(fc.oneof(characters, changed), (text) => {
      try {
        const ns = read(text)
        assert.ok(ns >= 0n && ns <= TIME_LIMIT_NS, text)
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'bad-parameter', String(error))
        assert.match(String(error), /TSBegin /)
      }
    }),
    { seed: SEED, numRuns: 3_000 },
  )
})

test('relative forms are those whose meaning changes', () => {
  const relative = new Set(['beforeNow', 'afterBegin', 'day'])
  for (const [form, { examples }] of Object.entries(TIME_FORMS))
    for (const text of examples) assert.equal(isRelativeTime(text), relative.has(form), text)
})
