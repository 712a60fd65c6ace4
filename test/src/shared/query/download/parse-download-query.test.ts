import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CapfleetError, type ErrorCode } from '../../../../../src/shared/base/error.ts'
import type { DownloadKind, DownloadQuery } from '../../../../../src/shared/query/download/download-query.ts'
import { formatDownloadQuery } from '../../../../../src/shared/query/download/format-download-query.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import {
  COMPRESSIONS,
  DEDUP_KEYS,
  FILE_FORMATS,
} from '../../../../../src/shared/query/download/query-values.ts'
import { addressListType } from '../../../../../src/shared/query/filter/address-list.ts'
import type { FrameCondition } from '../../../../../src/shared/query/filter/frame-filter.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'
import { TIME_SOURCES } from '../../../../../src/shared/query/time-source.ts'

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const context = { zone: 'UTC', nowNs: 1_795_000_000_000_000_000n, at: 'device' } as const
const parse = (kind: DownloadKind, raw: string): DownloadQuery =>
  parseDownloadQuery(kind, parseQueryString(raw), context)

test('a bare single is everything, uncompressed, in nanoseconds', () => {
  assert.deepEqual(parse('single', 'StreamName=trading_20261120_0930'), {
    kind: 'single',
    captureName: 'trading_20261120_0930',
    beginNs: 0n,
    endNs: 2n ** 32n * 1_000_000_000n,
    timeUnit: undefined,
    capturesMax: undefined,
    forcedFilters: [],
    filterBpf: undefined,
    filterDecap: false,
    filterAddresses: undefined,
    frameFilter: [],
    filterRegex: undefined,
    follow: false,
    timeSource: 'nic',
    tsMaxNs: undefined,
    maxBytes: undefined,
    maxPackets: undefined,
    afterBytes: undefined,
    strip: [],
    sliceBytes: undefined,
    dedupNs: undefined,
    dedupBy: 'payload',
    format: 'pcap',
    timeResolution: 'nsec',
    compression: 'none',
    waitS: undefined,
    ignored: [],
  })
})

test('a time range with every parameter', () => {
  const query = parse(
    'timerange',
    'TSBegin=20261120_173000&&TSEnd=20261120_180000&TSUnit=YYYYMMDD_HHMMSS&TSZone=singapore&TSMax=5000ULL' +
      '&Slice=96&Strip=mpls,vlan,mpls&Dedup=10000ULL&DedupBy=ip&FilterBPF=tcp+port+443&FilterBPFDecap=true&TSMode=vendorB3550&Compression=zstd' +
      '&FilterFrame=a7130.srcport=1,2+AND+capture.port!=3&FilterRE=GET+%2F&FilterPort=7' +
      '&FilterAddresses=10.0.0.9+2001%3Adb8%3A%3A%2F32,10.0.0.0%2F29%0A%23+none%0A10.0.0.3&MaxBytes=1000&MaxPackets=5ULL&After=900&TSResolution=usec&Wait=30&rand=0.123&Strict=1&',
  )
  assert.deepEqual(query, {
    kind: 'timerange',
    captureName: undefined,
    beginNs: BigInt(Date.UTC(2026, 10, 20, 9, 30)) * 1_000_000n,
    endNs: BigInt(Date.UTC(2026, 10, 20, 10)) * 1_000_000n,
    timeUnit: 'YYYYMMDD_HHMMSS',
    capturesMax: undefined,
    forcedFilters: [],
    filterBpf: 'tcp port 443',
    filterDecap: true,
    filterAddresses: '10.0.0.0/29,10.0.0.9,2001:db8::/32',
    frameFilter: [
      { field: 'a7130.srcport', op: '==', values: [1, 2] },
      { field: 'capture.port', op: '!=', values: [3] },
      { field: 'capture.port', op: '==', values: [7] },
    ],
    filterRegex: 'GET /',
    follow: false,
    timeSource: 'vendorB3550',
    tsMaxNs: 5000n,
    maxBytes: 1000n,
    maxPackets: 5n,
    afterBytes: 900n,
    strip: ['vlan', 'mpls'],
    sliceBytes: 96,
    dedupNs: 10_000n,
    dedupBy: 'ip',
    timeResolution: 'usec',
    format: 'pcap',
    compression: 'zstd',
    waitS: 30,
    ignored: [],
  })
})

test('Start and Stop are nanoseconds whatever their size', () => {
  const query = parse('splittime', 'StreamName=a&Start=5ULL&Stop=1763600000ULL&&')
  assert.deepEqual([query.beginNs, query.endNs, query.timeUnit], [5n, 1_763_600_000n, undefined])
})

test('a number that looks like another unit than the one a parameter has is refused, unless it says so', () => {
  for (const [kind, range, message] of [
    [
      'splittime',
      'Start=1793610060&Stop=1793610061',
      /^Start takes nanos, but "1793610060" looks like sec; append ULL/,
    ],
    ['splittime', 'Start=5&Stop=1793610061000', /^Stop takes nanos, but "1793610061000" looks like msecs/],
    [
      'timerange',
      'from=1793610060&to=1793610061',
      /^from takes msecs, but "1793610060" looks like sec; use TSBegin/,
    ],
    ['timerange', 'from=1793610060000&to=1793610061000000000', /^to takes msecs, but .* looks like nanos/],
  ] as const) {
    assert.throws(() => parse(kind, `StreamName=a&${range}`), { code: 'bad-parameter', message })
  }
  const early = parse('splittime', 'StreamName=a&Start=1793610060ULL&Stop=4793610060')
  assert.deepEqual([early.beginNs, early.endNs], [1_793_610_060n, 4_793_610_060n])
  assert.equal(formatDownloadQuery(early), 'StreamName=a&Start=1793610060ULL&Stop=4793610060')
})

test('TSMode of a time range may be a unit, and TSUnit wins over it', () => {
  for (const mode of ['nsec', 'nanos', 'usec', 'msec', 'msecs', 'sec']) {
    assert.ok(parse('timerange', `TSBegin=1&TSEnd=2&TSMode=${mode}`))
  }
  const bySec = parse('timerange', 'TSBegin=1&TSEnd=2&TSMode=sec')
  assert.deepEqual([bySec.beginNs, bySec.endNs, bySec.timeUnit], [1_000_000_000n, 2_000_000_000n, 'sec'])
  assert.equal(parse('timerange', 'TSBegin=1&TSEnd=2&TSMode=sec&TSUnit=msecs').endNs, 2_000_000n)
})

test('TSUint is TSUnit', () => {
  assert.equal(parse('timerange', 'TSBegin=1&TSEnd=2&TSUint=sec').endNs, 2_000_000_000n)
})

test('from and to are TSBegin and TSEnd in epoch milliseconds, whatever TSUnit says', () => {
  const query = parse('timerange', 'from=17636&to=1763600000000&TSUnit=sec')
  assert.deepEqual([query.beginNs, query.endNs], [17_636_000_000n, 1_763_600_000_000_000_000n])
})

test('tsModeAliases add spellings of TSMode and change none of the API', () => {
  const aliases = { footer: 'vendorA7130', nic: 'vendorB3550' } as const
  const source = (word: string) =>
    parseDownloadQuery('single', parseQueryString(`StreamName=a&TSMode=${word}`), {
      ...context,
      timeSourceAliases: aliases,
    }).timeSource
  assert.equal(source('footer'), 'vendorA7130')
  assert.equal(source('nic'), 'nic')
  for (const word of TIME_SOURCES) assert.equal(source(word), word)
  assert.throws(() => source('Footer'), /TSMode must be one of .*footer/)
})

test('a word of TSMode that is not known here is left to the device that reads the query itself', () => {
  const ofDevice = { ...context, zone: undefined, at: 'gateway' } as const
  for (const [kind, raw] of [
    ['single', 'StreamName=a&TSMode=foo%26bar'],
    ['timerange', 'TSBegin=1&TSEnd=2&TSUnit=nanos&TSMode=foo%26bar'],
  ] as const) {
    const query = parseDownloadQuery(kind, parseQueryString(raw), ofDevice)
    assert.equal(query.timeSourceWord, 'foo&bar')
    assert.equal(formatDownloadQuery(query), raw)
  }
  assert.equal(
    parseDownloadQuery('single', parseQueryString('StreamName=a&TSMode=vendorB3550'), ofDevice)
      .timeSourceWord,
    undefined,
  )
  assert.throws(() => parse('single', 'StreamName=a&TSMode=foo'), /TSMode must be one of/)
})

test('names the unit that was detected', () => {
  assert.equal(parse('timerange', 'TSBegin=1763600000&TSEnd=1763600001').timeUnit, 'sec')
  assert.equal(parse('timerange', 'TSBegin=1763600000&TSEnd=1763600001000').timeUnit, 'sec, msecs')
  assert.equal(parse('timerange', 'TSBegin=-15m&TSEnd=now').timeUnit, undefined)
})

test('lists unknown parameters, and at the gateway not its own', () => {
  assert.deepEqual(parse('single', 'StreamName=a&tsbegin=5&foo=1&rand=3').ignored, ['tsbegin', 'foo'])
  const given = parseQueryString('StreamName=a&Device=nyc1&Align=1')
  const ignoredAt = (at: 'device' | 'gateway' | 'fleet') =>
    parseDownloadQuery('single', given, { ...context, at }).ignored
  assert.deepEqual(ignoredAt('device'), ['Device', 'Align'])
  assert.deepEqual(ignoredAt('gateway'), ['Device'])
  assert.deepEqual(ignoredAt('fleet'), [])
})

const RANGE = 'TSBegin=1&TSEnd=2&TSUnit=sec'

for (const name of [
  'Compression',
  'FilterBPFDecap',
  'FilterPort',
  'FilterRE',
  'Follow',
  'MaxBytes',
  'MaxPackets',
  'Slice',
  'Strict',
  'TSMax',
  'TSMode',
  'TSResolution',
  'TSUint',
  'TSZone',
  'Wait',
]) {
  test(`an empty ${name} means its default`, () => {
    assert.deepEqual(parse('timerange', `${RANGE}&${name}=`), parse('timerange', RANGE))
  })
}

test('an empty TSUnit means that the form of the text decides', () => {
  const range = 'TSBegin=1000000000&TSEnd=2000000000'
  assert.deepEqual(parse('timerange', `${range}&TSUnit=`), parse('timerange', range))
})

for (const word of ['SEC', 'sec', 'Sec']) {
  test(`TSMode=${word} is a unit, as scripts for the legacy API have it`, () => {
    assert.deepEqual(parse('timerange', `TSBegin=1&TSEnd=2&TSMode=${word}`), parse('timerange', RANGE))
  })
}

test('a word that is no TSMode is answered with those of this path', () => {
  assert.throws(() => parse('timerange', `${RANGE}&TSMode=hours`), { message: /vendorA7130, .*msecs/ })
  assert.throws(() => parse('single', 'StreamName=a&TSMode=hours'), { message: /vendorB3550, got/ })
})

test('an end after every time that PCAP can represent means the end', () => {
  const last = parse('timerange', 'TSBegin=1&TSEnd=4294967296&TSUnit=sec').endNs
  assert.equal(parse('timerange', 'TSBegin=1000000000&TSEnd=18446744073709551615&TSUnit=nanos').endNs, last)
  assert.equal(parse('timerange', 'TSBegin=1&TSEnd=9999999999&TSUnit=sec').endNs, last)
})

test('FilterRE stays as it is typed, with its slashes', () => {
  assert.equal(parse('single', `StreamName=a&FilterRE=${encodeURIComponent('/a b/i')}`).filterRegex, '/a b/i')
})

test('After is a parameter only for who skips bytes itself', () => {
  const raw = 'StreamName=a&After=1000'
  assert.equal(parse('single', raw).afterBytes, 1000n)
  const unknown = parseDownloadQuery('single', parseQueryString(raw), { ...context, at: 'gateway' })
  assert.deepEqual([unknown.afterBytes, unknown.ignored], [undefined, ['After']])
})

test('FilterBPFDecap is a switch like the others, and written as third-party devices know it', () => {
  for (const [text, expected] of Object.entries({ true: true, 1: true, false: false, 0: false })) {
    const query = parse('single', `StreamName=a&FilterBPF=tcp&FilterBPFDecap=${text}`)
    assert.equal(query.filterDecap, expected, text)
  }
  const given = parse('single', 'StreamName=a&FilterBPF=tcp&FilterBPFDecap=1')
  assert.match(formatDownloadQuery(given), /&FilterBPFDecap=true/)
})

test('an empty FilterBPF or FilterFrame counts as missing', () => {
  assert.equal(parse('single', 'StreamName=a&FilterBPF=&FilterFrame=').filterBpf, undefined)
  assert.equal(parse('single', 'StreamName=a&FilterBPF=+').filterBpf, undefined)
})

test('takes every value of Compression', () => {
  for (const compression of COMPRESSIONS) {
    assert.equal(parse('single', `StreamName=a&Compression=${compression}`).compression, compression)
  }
})

test('from and to the same local time of the hour that the clock shows twice is that hour', () => {
  const { beginNs, endNs } = parse(
    'timerange',
    'TSBegin=20261101_013000&TSEnd=20261101_013000&TSZone=New_York',
  )
  assert.equal(endNs - beginNs, 3_600_000_000_000n)
})

test('names the zone of local times, where no TSZone does', () => {
  const zoneOf = (raw: string) => parse('timerange', raw).timeZone
  assert.equal(zoneOf('TSBegin=20261120_093000&TSEnd=20261120_100000'), context.zone)
  assert.equal(zoneOf('TSBegin=1763600000&TSEnd=20261120_100000'), context.zone)
  assert.equal(zoneOf('TSBegin=20261120_093000&TSEnd=20261120_100000&TSZone='), context.zone)
  assert.equal(zoneOf('TSBegin=20261120_093000&TSEnd=20261120_100000&TSZone=%20'), context.zone)
  assert.equal(zoneOf('TSBegin=20261120_093000&TSEnd=20261120_100000&TSZone=Tokyo'), undefined)
  assert.equal(zoneOf('TSBegin=1763600000&TSEnd=now'), undefined)
})

test('without a zone local times stay as they are written, for the device to read', () => {
  const read = (raw: string) =>
    parseDownloadQuery('timerange', parseQueryString(raw), { zone: undefined, nowNs: 7_000_000_005n })
  const both = read('TSBegin=20261120_093000&TSEnd=20261120_100000&TSUnit=YYYYMMDD_HHMMSS')
  assert.equal(
    formatDownloadQuery(both),
    'TSBegin=20261120_093000&TSEnd=20261120_100000&TSUnit=YYYYMMDD_HHMMSS',
  )
  assert.deepEqual(read(formatDownloadQuery(both)), both)
  const one = read('TSBegin=-1s&TSEnd=20261120_100000')
  assert.equal(
    decodeURIComponent(formatDownloadQuery(one)),
    'TSBegin=1970-01-01T00:00:06.000000005Z&TSEnd=20261120_100000',
  )
  assert.equal(parse('timerange', `${formatDownloadQuery(one)}&TSZone=UTC`).beginNs, 6_000_000_005n)
  const zoned = read('TSBegin=20261120_173000&TSEnd=20261120_180000&TSZone=Singapore')
  assert.equal(zoned.beginNs, BigInt(Date.UTC(2026, 10, 20, 9, 30)) * 1_000_000n)
  assert.throws(() => read('TSBegin=20261131_093000&TSEnd=20261120_100000'), { code: 'bad-parameter' })
})

test('an empty range is a range', () => {
  assert.equal(parse('timerange', 'TSBegin=7&TSEnd=7').endNs, 7n)
})

const broken: readonly [DownloadKind, string, string, ErrorCode?][] = [
  ['single', '', 'StreamName'],
  ['single', 'StreamName=', 'StreamName'],
  ['single', 'streamname=a', 'StreamName'],
  ['single', 'StreamName=a&StreamName=b', 'StreamName'],
  ['single', 'StreamName=a%00', 'StreamName'],
  ['single', 'StreamName=a%C2%85', 'StreamName'],
  ['single', 'StreamName=a%FC', 'StreamName'],
  ['single', 'StreamName=a%0a', 'StreamName'],
  ['single', `StreamName=${'a'.repeat(1_025)}`, 'StreamName'],
  ['single', `StreamName=${'%C3%B6'.repeat(513)}`, 'StreamName'],
  ['single', 'StreamName=a&Compression=gzip', 'Compression'],
  ['single', 'StreamName=a&Compression=0', 'Compression'],
  ['single', 'StreamName=a&Compression=10', 'Compression'],
  ['single', 'StreamName=a&Compression=ZSTD', 'Compression'],
  ['single', 'StreamName=a&Slice=0', 'Slice'],
  ['single', 'StreamName=a&Slice=12289', 'Slice'],
  ['single', 'StreamName=a&Slice=-1', 'Slice'],
  ['single', 'StreamName=a&Slice=1.5', 'Slice'],
  ['single', 'StreamName=a&TSMax=0', 'TSMax'],
  ['single', 'StreamName=a&TSMax=9223372036854775808', 'TSMax'],
  ['single', 'StreamName=a&TSResolution=msec', 'TSResolution'],
  ['single', 'StreamName=a&Wait=601', 'Wait'],
  ['single', 'StreamName=a&FilterBPFDecap=yes', 'FilterBPFDecap'],
  ['single', 'StreamName=a&FilterFrame=capture.port==256', 'FilterFrame', 'bad-frame-filter'],
  ['single', 'StreamName=a&FilterFrame=port==1', 'FilterFrame', 'bad-frame-filter'],
  ['single', `StreamName=a&FilterRE=${'a'.repeat(1_025)}`, 'FilterRE'],
  ['single', 'StreamName=a&FilterRE=a%00b', 'FilterRE'],
  ['single', 'StreamName=a&FilterPort=256', 'FilterPort'],
  ['single', 'StreamName=a&TSMode=sec', 'TSMode'],
  ['single', 'StreamName=a&TSMode=constructor', 'TSMode'],
  ['single', 'StreamName=a&TSMode=unknown', 'TSMode'],
  ['single', 'StreamName=a&MaxBytes=23', 'MaxBytes'],
  ['single', 'StreamName=a&MaxPackets=0', 'MaxPackets'],
  ['single', 'StreamName=a&Follow=2', 'Follow'],
  ['single', 'StreamName=a&Follow=1&TSMode=vendorA7130', 'Follow'],
  ['single', 'StreamName=a&Strict=maybe', 'Strict'],
  ['single', 'StreamName=a&Strict=1&Copression=zstd', 'Copression'],
  ['single', 'StreamName=a&FilterBPF=tcp%00', 'FilterBPF'],
  ['single', `StreamName=a&FilterBPF=${'a'.repeat(16_385)}`, 'FilterBPF'],
  ['single', 'StreamName=a&FilterBPF=%zz', 'FilterBPF'],
  ['single', 'StreamName=a&FilterAddresses=', 'FilterAddresses'],
  ['single', 'StreamName=a&FilterAddresses=%23+none', 'FilterAddresses'],
  ['single', 'StreamName=a&FilterAddresses=10.0.0.256', 'FilterAddresses'],
  ['timerange', 'TSEnd=2', 'TSBegin'],
  ['timerange', 'TSBegin=2', 'TSEnd'],
  ['timerange', 'TSBegin=2&TSEnd=1', 'TSBegin'],
  ['timerange', 'TSBegin=x&TSEnd=1', 'TSBegin'],
  ['timerange', 'TSBegin=1&TSEnd=1x', 'TSEnd'],
  ['timerange', 'TSBegin=1&TSEnd=2&TSUnit=hours', 'TSUnit'],
  ['timerange', 'TSBegin=1&TSEnd=2&TSUnit=constructor', 'TSUnit'],
  ['timerange', 'TSBegin=1&TSEnd=2&TSUint=hours', 'TSUint'],
  ['timerange', 'TSBegin=1&TSEnd=2&TSUnit=sec&TSUint=sec', 'TSUint'],
  ['timerange', `${RANGE}&TSZone=Atlantis`, 'TSZone', 'bad-timezone'],
  ['timerange', `${RANGE}&TSZone=West`, 'TSZone', 'ambiguous-timezone'],
  ['timerange', `${RANGE}&from=1`, 'from'],
  ['timerange', 'from=1&TSEnd=2&to=3', 'to'],
  ['timerange', 'from=1', 'TSEnd'],
  ['timerange', 'from=2&to=1', 'from'],
  ['timerange', 'from=x&to=1', 'from'],
  ['timerange', 'TSBegin=9999999998&TSEnd=9999999999&TSUnit=sec', 'TSBegin'],
  ['splittime', 'StreamName=a&Start=1', 'Stop'],
  ['splittime', 'StreamName=a&Stop=1', 'Start'],
  ['splittime', 'Start=1&Stop=2', 'StreamName'],
  ['splittime', 'StreamName=a&Start=2&Stop=1', 'Start'],
]
for (const [kind, raw, param, code = 'bad-parameter'] of broken) {
  test(`refuses ${kind}?${raw.slice(0, 60)}, naming ${param}`, () => {
    assert.throws(
      () => parse(kind, raw),
      (error) => {
        assert.ok(error instanceof CapfleetError, String(error))
        assert.equal(error.code, code)
        assert.equal(error.details.param, param)
        assert.ok(error.message.startsWith(param))
        return true
      },
    )
  })
}

const kinds = fc.constantFrom<DownloadKind>('single', 'timerange', 'splittime')
const names = fc.constantFrom(
  'StreamName',
  'TSBegin',
  'TSEnd',
  'TSZone',
  'TSMax',
  'Start',
  'Stop',
  'Slice',
  'Strict',
  'FilterBPF',
  'TSMode',
  'Compression',
  'TSResolution',
  'Wait',
  'rand',
  'FilterFrame',
  'FilterRE',
  'FilterPort',
  'FilterBPFDecap',
  'MaxBytes',
  'MaxPackets',
  'from',
  'to',
)
const values = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '1',
    '1763600000',
    '20261120_093000',
    'now',
    '-15m',
    'sec',
    'zstd',
    'West',
    '%',
    '%ff',
    '1ULL',
  ),
  fc.bigInt({ min: 0n, max: 2n ** 70n }).map(String),
)
const pairs = fc.tuple(names, values).map((pair) => pair.join('='))
const queryStrings = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.array(pairs, { maxLength: 12 }).map((all) => all.join('&')),
)

const instants = fc.bigInt({ min: 0n, max: 2n ** 32n * 1_000_000_000n })
const rangeOf = ([a, b]: [bigint, bigint]): { beginNs: bigint; endNs: bigint } =>
  a < b ? { beginNs: a, endNs: b } : { beginNs: b, endNs: a }
const conditions: fc.Arbitrary<FrameCondition> = fc
  .record({
    field: fc.constantFrom(
      'capture.port',
      'a7130.device',
      'a7130.srcdevice',
      'a7130.srcport',
      'c3550.srcport',
    ),
    op: fc.constantFrom('==', '!='),
    values: fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 5 }),
  })
  .map((condition) => ({ ...condition }))
const addressLists = fc
  .array(fc.oneof(fc.ipV4(), fc.ipV6()), { minLength: 1, maxLength: 8 })
  .map((list) => addressListType().read(list.join(' '), 'FilterAddresses', {}) ?? '')
const queries: fc.Arbitrary<DownloadQuery> = fc
  .record({
    kind: kinds,
    captureName: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/),
    times: fc.tuple(instants, instants),
    filterBpf: fc.option(
      fc.string({ unit: 'grapheme' }).filter((text) => text.trim() !== '' && !/\p{Cc}/u.test(text)),
      { nil: undefined },
    ),
    filterDecap: fc.boolean(),
    filterAddresses: fc.option(addressLists, { nil: undefined }),
    frameFilter: fc.array(conditions, { maxLength: 4 }),
    filterRegex: fc.option(
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 50 }).filter((text) => !text.includes('\0')),
      {
        nil: undefined,
      },
    ),
    timeSource: fc.constantFrom(...TIME_SOURCES),
    tsMaxNs: fc.option(fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }), { nil: undefined }),
    maxBytes: fc.option(fc.bigInt({ min: 24n, max: 2n ** 63n - 1n }), { nil: undefined }),
    maxPackets: fc.option(fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }), { nil: undefined }),
    afterBytes: fc.option(fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }), { nil: undefined }),
    sliceBytes: fc.option(fc.integer({ min: 1, max: 12_288 }), { nil: undefined }),
    strip: fc
      .subarray(['vlan', 'mpls', 'tunnels'] as const)
      .map((kinds) => (kinds.length === 3 ? (['all'] as const) : kinds)),
    dedupNs: fc.option(fc.bigInt({ min: 1n, max: 10_000_000_000n }), { nil: undefined }),
    dedupBy: fc.constantFrom(...DEDUP_KEYS),
    format: fc.constantFrom(...FILE_FORMATS),
    timeResolution: fc.constantFrom('nsec' as const, 'usec' as const),
    compression: fc.constantFrom(...COMPRESSIONS),
  })
  .map(({ times, ...query }) => {
    const range =
      query.kind === 'single' ? { beginNs: 0n, endNs: 2n ** 32n * 1_000_000_000n } : rangeOf(times)
    return {
      follow:
        query.timeSource === 'nic' &&
        query.filterDecap &&
        query.afterBytes === undefined &&
        query.dedupNs === undefined,
      ...query,
      dedupBy: query.dedupNs === undefined ? 'payload' : query.dedupBy,
      ...range,
      captureName: query.kind === 'timerange' ? undefined : query.captureName,
      timeUnit: query.kind === 'timerange' ? 'nanos' : undefined,
      forcedFilters: [],
      capturesMax: undefined,
      waitS: undefined,
      ignored: [],
    }
  })

test(`a formatted query reads back as it was (SEED=${SEED})`, () => {
  fc.assert(
    fc.property(queries, (query) => {
      assert.deepEqual(parse(query.kind, `${formatDownloadQuery(query)}&Strict=1`), query)
    }),
    { numRuns: 1_000, seed: SEED },
  )
})

/** A whole query, with an additional parameter, or with some of its characters replaced. */
const nearQueries = fc
  .tuple(
    queries,
    fc.nat(400),
    fc.nat(3),
    fc.oneof(
      fc.constant(''),
      pairs.map((pair) => `&${pair}`),
      values,
    ),
  )
  .map(([query, at, length, piece]) => {
    const text = formatDownloadQuery(query)
    return [query.kind, text.slice(0, at) + piece + text.slice(at + length)] as const
  })

test(`accepts or throws CapfleetError, nothing else (SEED=${SEED})`, () => {
  let accepted = 0
  let refused = 0
  fc.assert(
    fc.property(fc.oneof(fc.tuple(kinds, queryStrings), nearQueries), ([kind, raw]) => {
      try {
        const query = parse(kind, raw)
        assert.ok(query.beginNs >= 0n && query.beginNs <= query.endNs)
        accepted += 1
      } catch (error) {
        assert.ok(error instanceof CapfleetError, String(error))
        assert.notEqual(error.code, 'internal-error')
        refused += 1
      }
    }),
    { numRuns: 5_000, seed: SEED },
  )
  assert.ok(accepted > 100 && refused > 100, `${accepted} accepted, ${refused} refused`)
})

test('throws within a millisecond on average', () => {
  // The fastest of all rounds: a busy machine makes some of them slow.
  let leastMs = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20; round++) {
    const startedMs = performance.now()
    for (const [kind, raw] of broken) assert.throws(() => parse(kind, raw))
    leastMs = Math.min(leastMs, performance.now() - startedMs)
  }
  assert.ok(leastMs / broken.length < 1, `${leastMs} ms for ${broken.length}`)
})
