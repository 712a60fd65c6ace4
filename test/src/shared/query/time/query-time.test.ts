import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import {
  parseQueryTime,
  TIME_LIMIT_NS,
  type TimeContext,
  type TimeUnit,
} from '../../../../../src/shared/query/time/query-time.ts'

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
  assert.deepEqual(read('1763600000ULL'), { ns: 1_763_600_000_000_000_000n, unit: 'sec', isLocal: false })
})

test('finds the unit by the number of digits', () => {
  const unitOfDigits: readonly [string, TimeUnit][] = [
    ['1', 'nanos'],
    ['99999999', 'nanos'],
    ['00099999999', 'nanos'],
    ['631152000', 'sec'],
    ['4294967296', 'sec'],
    ['00001763600000', 'sec'],
    ['631152000000', 'msecs'],
    ['4294967296000', 'msecs'],
    ['631152000000000', 'usecs'],
    ['4294967296000000', 'usecs'],
    ['631152000000000000', 'nanos'],
    ['0000000000000000007', 'nanos'],
  ]
  for (const isEnd of [false, true])
    for (const [text, unit] of unitOfDigits) assert.equal(read(text, { isEnd }).unit, unit, text)
})

test('a number whose unit would put it outside 1990 to 2106 is refused, unless TSUnit names the unit', () => {
  const improbable: readonly [string, TimeUnit][] = [
    ['100000000', 'sec'],
    ['631151999', 'sec'],
    ['4294967297', 'sec'],
    ['99999999999', 'sec'],
    ['100000000000', 'msecs'],
    ['202611020901', 'msecs'],
    ['20261102090100', 'msecs'],
    ['4294967296001', 'msecs'],
    ['100000000000000', 'usecs'],
    ['99999999999999999', 'usecs'],
    ['100000000000000000', 'nanos'],
    ['179361006012345678', 'nanos'],
  ]
  for (const [text, unit] of improbable) {
    for (const isEnd of [false, true])
      assert.throws(() => read(text, { isEnd }), {
        message: new RegExp(`^TSBegin "${text}" has .* in ${unit}, and outside of 1990 to 2106; give TSUnit`),
      })
    assert.equal(read(text, { unit, isEnd: true }).unit, unit)
  }
  assert.throws(() => read('20261102'), /write the date as 2026-11-02/)
  assert.equal(read('20261102', { unit: 'nanos' }).ns, 20_261_102n)
})

test('reads a local time in its zone', () => {
  assert.deepEqual(read('20261120_093000'), {
    ns: BigInt(Date.UTC(2026, 10, 20, 9, 30)) * 1_000_000n,
    unit: 'YYYYMMDD_HHMMSS',
    isLocal: true,
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
  assert.deepEqual(read('now'), { ns: NOW_NS, unit: undefined, isLocal: false })
  assert.equal(read('now-6h').ns, NOW_NS - 21_600_000_000_000n)
  assert.equal(read('now+90s').ns, NOW_NS + 90_000_000_000n)
  assert.equal(read('-1w').ns, NOW_NS - 604_800_000_000_000n)
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
  assert.throws(() => read('4294967297', { unit: 'sec' }), /outside of 1970/)
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
  ['2026-11-31T00:00:00Z', {}],
  ['1763600000', { unit: 'YYYYMMDD_HHMMSS' }],
  ['20261120_093000', { unit: 'sec' }],
  ['１７６３６００００００', {}],
  ['1763600000.1234567891', {}],
  ['1763600000123.1234567', {}],
  ['1763600000123456789.5', {}],
  ['1763600000.5', { unit: 'nanos' }],
  ['1763600000.5ULL', {}],
  ['@', {}],
  ['@1763600000ULLULL', {}],
  ['2026-11-20T09:30:60Z', {}],
  ['2026-11-30T22:59:60Z', {}],
  ['20261102', {}],
  ['2026-11-2', {}],
  ['2026-11-20T24:00:00Z', {}],
  ['2026-11-20T09:30:00+24:00', {}],
  ['2026-11-20T09:30:00+01:60', {}],
  ['2026-11-20T09:30:00 08', {}],
  ['2026-11/20', {}],
  ['Tue 2026-11-20 09:30:00', {}],
  ['Feb 30, 2026 09:30:00', {}],
  ['Xyz 20, 2026 09:30:00', {}],
  ['+10m', {}],
  ['+10m', { beginNs: undefined, isEnd: true }],
  ['today', { zone: undefined }],
  ['2026-11-20 09:30:00.5', { zone: undefined }],
  ['Today', {}],
  ['tomorrow', {}],
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

test('a fraction is exact in each unit', () => {
  assert.equal(read('1763600000.1').ns, 1_763_600_000_100_000_000n)
  assert.equal(read('1763600000,000000001').ns, 1_763_600_000_000_000_001n)
  assert.equal(read('1763600000123.000001').ns, 1_763_600_000_123_000_001n)
  assert.equal(read('1763600000123456.001').ns, 1_763_600_000_123_456_001n)
  assert.equal(read('5.25', { unit: 'sec' }).ns, 5_250_000_000n)
  assert.equal(read('@5.25').ns, 5_250_000_000n)
  assert.equal(read('0.000000').ns, 0n)
})

test('"+10m" counts from the start, also where "+" arrives as a space', () => {
  const end = { isEnd: true, beginNs: 1_763_600_000_000_000_007n } as const
  assert.equal(read('+10m', end).ns, 1_763_600_600_000_000_007n)
  assert.equal(read(' 10m', end).ns, 1_763_600_600_000_000_007n)
  assert.throws(() => read('+10m'), /counts from the start of the range, which this is; write now\+10m/)
})

test('a day begins where the zone has midnight, or the first time after it', () => {
  const day = (text: string, zone: string) => read(text, { zone }).ns / 1_000_000n
  assert.equal(day('2026-11-20', 'UTC'), BigInt(Date.UTC(2026, 10, 20)))
  assert.equal(day('2026-11-20', 'Asia/Singapore'), BigInt(Date.UTC(2026, 10, 19, 16)))
  assert.equal(day('2026-06-01', 'Europe/Berlin'), BigInt(Date.UTC(2026, 4, 31, 22)))
  // Midnight was put forward to 01:00 there.
  assert.equal(day('2018-11-04', 'America/Sao_Paulo'), BigInt(Date.UTC(2018, 10, 4, 3)))
  assert.deepEqual(read('2026-11-20', { isEnd: true }), read('2026-11-20'))
  // 2026-11-18 11:06:40 in UTC.
  assert.equal(read('today').ns, BigInt(Date.UTC(2026, 10, 18)) * 1_000_000n)
  assert.equal(read('yesterday').ns, BigInt(Date.UTC(2026, 10, 17)) * 1_000_000n)
  assert.equal(day('today', 'Pacific/Kiritimati'), BigInt(Date.UTC(2026, 10, 18, 10)))
  assert.equal(day('yesterday', 'Pacific/Kiritimati'), BigInt(Date.UTC(2026, 10, 17, 10)))
})

test('a leap second is the first second of the next day', () => {
  const midnight = BigInt(Date.UTC(2017, 0, 1)) * 1_000_000n
  assert.equal(read('2016-12-31T23:59:60Z').ns, midnight)
  assert.equal(read('2016-12-31T23:59:60.25Z').ns, midnight + 250_000_000n)
  assert.equal(read('2017-01-01T00:59:60+01:00').ns, midnight)
  assert.equal(read('20170101_005960', { zone: 'Europe/Berlin' }).ns, midnight)
  assert.throws(() => read('2016-12-30T23:59:60Z'), /leap seconds are at 23:59:60 UTC at the end of a month/)
})

test('in an unknown zone, a local time stays a text that every device understands', () => {
  const local = (text: string) => read(text, { zone: undefined })
  assert.deepEqual(local('2026-11-20 09:30'), {
    ns: 0n,
    unit: undefined,
    isLocal: true,
    localText: '20261120_093000',
  })
  assert.equal(local('2026-11-20').localText, '20261120_000000')
  assert.equal(local('20261120_093000').localText, '20261120_093000')
  assert.equal(local('2026-11-20T09:30:00Z').localText, undefined)
})
