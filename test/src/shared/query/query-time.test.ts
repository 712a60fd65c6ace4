import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import {
  parseQueryTime,
  TIME_LIMIT_NS,
  type TimeContext,
  type TimeUnit,
} from '../../../../src/shared/query/query-time.ts'

const NOW_NS = 1_795_000_000_123_456_789n
const base: TimeContext = {
  parameter: 'TSBegin',
  unit: undefined,
  zone: 'UTC',
  nowNs: NOW_NS,
  isEnd: false,
}
const read = (text: string, context: Partial<TimeContext> = {}) =>
  parseQueryTime(text, { ...base, ...context })

test('reads every unit exactly', () => {
  assert.equal(read('1763600000123456789', { unit: 'nanos' }).ns, 1_763_600_000_123_456_789n)
  assert.equal(read('1763600000123456', { unit: 'usecs' }).ns, 1_763_600_000_123_456_000n)
  assert.equal(read('1763600000123', { unit: 'msecs' }).ns, 1_763_600_000_123_000_000n)
  assert.equal(read('1763600000', { unit: 'sec' }).ns, 1_763_600_000_000_000_000n)
})

test('takes the ULL ending of existing scripts', () => {
  assert.equal(read('1763600000123456789ULL', { unit: 'nanos' }).ns, 1_763_600_000_123_456_789n)
  assert.deepEqual(read('1763600000ULL'), { ns: 1_763_600_000_000_000_000n, unit: 'sec' })
})

test('finds the unit by the number of digits', () => {
  const unitOfDigits: readonly [string, TimeUnit][] = [
    ['12345678', 'nanos'],
    ['99999999', 'nanos'],
    ['100000000', 'sec'],
    ['00099999999', 'nanos'],
    ['10000000000', 'sec'],
    ['4294967296', 'sec'],
    ['00001763600000', 'sec'],
    ['100000000000', 'msecs'],
    ['4294967296000', 'msecs'],
    ['99999999999999', 'msecs'],
    ['100000000000000', 'usecs'],
    ['4294967296000000', 'usecs'],
    ['99999999999999999', 'usecs'],
    ['100000000000000000', 'nanos'],
  ]
  for (const [text, unit] of unitOfDigits) assert.equal(read(text, { isEnd: true }).unit, unit, text)
  assert.equal(read('100000000000000000').unit, 'nanos')
  assert.equal(read('0000000000000000007').unit, 'nanos')
})

test('reads a local time in its zone', () => {
  assert.deepEqual(read('20261120_093000'), {
    ns: BigInt(Date.UTC(2026, 10, 20, 9, 30)) * 1_000_000n,
    unit: 'YYYYMMDD_HHMMSS',
  })
  assert.equal(
    read('20261120_173000', { zone: 'Asia/Singapore' }).ns,
    BigInt(Date.UTC(2026, 10, 20, 9, 30)) * 1_000_000n,
  )
  assert.equal(
    read('20261120_150000', { zone: 'Asia/Kolkata' }).ns,
    BigInt(Date.UTC(2026, 10, 20, 9, 30)) * 1_000_000n,
  )
})

test('a local time that the clock shows twice is the first for begin and the last for end', () => {
  const zone = 'America/New_York'
  const first = BigInt(Date.UTC(2026, 10, 1, 5, 30)) * 1_000_000n
  assert.equal(read('20261101_013000', { zone, isEnd: false }).ns, first)
  assert.equal(read('20261101_013000', { zone, isEnd: true }).ns, first + 3_600_000_000_000n)
})

test('a local time that the clock skips is refused, and its neighbours are not', () => {
  const zone = 'America/New_York'
  assert.throws(() => read('20260308_023000', { zone }), /TSBegin "20260308_023000" does not exist/)
  const gap = BigInt(Date.UTC(2026, 2, 8, 7)) * 1_000_000n
  assert.equal(read('20260308_030000', { zone }).ns, gap)
  assert.equal(read('20260308_015959', { zone }).ns, gap - 1_000_000_000n)
  assert.throws(() => read('20111230_120000', { zone: 'Pacific/Apia' }), /does not exist/)
  assert.throws(() => read('20261004_021500', { zone: 'Australia/Lord_Howe' }), /does not exist/)
})

test('agrees with the zone database for every hour of two years in six zones', () => {
  const zones = [
    'Europe/Berlin',
    'America/St_Johns',
    'Australia/Lord_Howe',
    'Asia/Kathmandu',
    'Africa/Casablanca',
    'America/Sao_Paulo',
  ]
  for (const zone of zones) {
    const clock = new Intl.DateTimeFormat('sv-SE', {
      timeZone: zone,
      dateStyle: 'short',
      timeStyle: 'medium',
    })
    for (let ms = Date.UTC(2025, 0, 1); ms < Date.UTC(2027, 0, 1); ms += 3_600_000) {
      const shown = clock.format(ms).replaceAll(/[-:]/g, '').replace(' ', '_')
      const instants = [read(shown, { zone }).ns, read(shown, { zone, isEnd: true }).ns]
      assert.ok(instants.includes(BigInt(ms) * 1_000_000n), `${shown} in ${zone}`)
    }
  }
})

test('reads relative times and RFC 3339', () => {
  assert.deepEqual(read('now'), { ns: NOW_NS, unit: undefined })
  assert.equal(read('-15m').ns, NOW_NS - 900_000_000_000n)
  assert.equal(read('-2d', { unit: 'sec' }).ns, NOW_NS - 172_800_000_000_000n)
  const instant = BigInt(Date.UTC(2026, 10, 20, 9, 30)) * 1_000_000n
  assert.equal(read('2026-11-20T09:30:00Z').ns, instant)
  assert.equal(read('2026-11-20T17:30:00+08:00').ns, instant)
  assert.equal(read('2026-11-20T17:30:00 08:00').ns, instant)
  assert.equal(read('2026-11-20T04:30:00.000000001-05:00').ns, instant + 1n)
  assert.equal(read('2026-11-20T09:30:00.5Z').ns, instant + 500_000_000n)
  assert.equal(read('2026-11-20T09:30:00.025Z').ns, instant + 25_000_000n)
})

test('takes the limits of PCAP and nothing beyond', () => {
  assert.equal(read('0').ns, 0n)
  assert.equal(read(String(TIME_LIMIT_NS)).ns, TIME_LIMIT_NS)
  assert.equal(read('4294967296').ns, TIME_LIMIT_NS)
  assert.throws(() => read(String(TIME_LIMIT_NS + 1n)), /outside of 1970/)
  assert.throws(() => read('4294967297'), /outside of 1970/)
})

const broken: readonly [string, Partial<TimeContext>][] = [
  ['', {}],
  ['abc', {}],
  ['-1', {}],
  ['1.5', {}],
  ['1e9', {}],
  ['0x10', {}],
  [' 1763600000', {}],
  ['1763600000ull', {}],
  ['1763600000ULLULL', {}],
  ['99999999999999999999', {}],
  ['999999999999999999999', {}],
  ['-15', {}],
  ['-15y', {}],
  ['-999999999d', {}],
  ['20260230_000000', {}],
  ['00990101_000000', {}],
  ['0070-01-01T00:00:00Z', {}],
  ['20261301_000000', {}],
  ['20261120_240000', {}],
  ['20261120_235960', {}],
  ['20261120_0930', {}],
  ['2026-11-31T00:00:00Z', {}],
  ['2026-11-20T09:30:00', {}],
  ['2026-11-20', {}],
  ['1763600000', { unit: 'YYYYMMDD_HHMMSS' }],
  ['20261120_093000', { unit: 'sec' }],
  ['１７６３６００００００', {}],
]
for (const [text, context] of broken) {
  test(`refuses "${text}" in ${context.unit ?? 'any unit'}, naming the parameter`, () => {
    assert.throws(
      () => read(text, context),
      (error) =>
        error instanceof CapfleetError &&
        error.code === 'bad-parameter' &&
        error.details.param === 'TSBegin' &&
        error.message.startsWith('TSBegin '),
    )
  })
}
