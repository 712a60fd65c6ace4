import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { withFilters } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import {
  type SeenQuestion,
  SeenReader,
  seenQuestion,
  seenTarget,
} from '../../../../../src/gateway/fleet/questions/seen-question.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'

const ADDRESSES = '10.0.0.1,10.0.0.0/24'

function asked(options: { verify?: boolean; bpf?: string; forced?: readonly string[] } = {}): SeenQuestion {
  const { verify = true, bpf, forced = [] } = options
  const given = new Map([
    ['TSBegin', '1793610000'],
    ['TSEnd', '1793610060'],
    ...(bpf === undefined ? [] : [['FilterBPF', bpf] as const]),
  ])
  const query = withFilters(parseDownloadQuery('timerange', given, { zone: 'UTC', nowNs: 0n }), forced)
  return seenQuestion(query, { addresses: ADDRESSES, verify, verifyBytesMax: 5n })
}

function refusal(code: string, words: RegExp) {
  return (error: unknown) =>
    error instanceof CapfleetError && error.code === code && words.test(error.message)
}

const COUNTED = { packets: '2', bytes: '120', firstNs: '5', lastNs: '7' }
const address = (members: object = {}): string =>
  JSON.stringify({ address: '10.0.0.1', ...COUNTED, spans: [], ...members })
const NOT_COUNTED = { packets: undefined, bytes: undefined, firstNs: undefined, lastNs: undefined }
const end = (members: object = {}): string =>
  JSON.stringify({ end: true, addresses: 2, complete: true, otherLinkTypes: [], ...members })

describe('what a device is asked', () => {
  test('has the filters of the caller, all times in nanoseconds', () => {
    const { searchParams, pathname } = new URL(
      seenTarget(asked({ bpf: 'tcp', forced: ['udp or tcp'] })),
      'http://device',
    )
    assert.equal(pathname, '/api/v1/seen')
    assert.deepEqual(Object.fromEntries(searchParams), {
      TSBegin: '1793610000000000000',
      TSEnd: '1793610060000000000',
      TSUnit: 'nanos',
      FilterBPF: '(udp or tcp) and (tcp)',
      Address: ADDRESSES,
      Verify: '1',
      VerifyBytesMax: '5',
    })
    assert.equal(
      new URL(seenTarget(asked({ verify: false })), 'http://device').searchParams.has('Verify'),
      false,
    )
  })

  test('filters need packets', () => {
    assert.throws(
      () => asked({ verify: false, bpf: 'tcp' }),
      refusal('bad-parameter', /FilterBPF needs Verify=1/),
    )
    assert.throws(
      () => asked({ verify: false, forced: ['udp'] }),
      refusal('bad-parameter', /Verify must be 1 for callers with a filter/),
    )
  })
})

describe('what a device answers', () => {
  test('is reduced to the members that we know', () => {
    const reader = new SeenReader('a', asked())
    assert.deepEqual(reader.read(address({ more: 1 })), {
      address: '10.0.0.1',
      ...COUNTED,
      spans: [],
    })
    assert.deepEqual(reader.read('{"checkedBytes":"7","more":1}'), { checkedBytes: '7' })
    assert.throws(() => reader.finish(), refusal('device-unreachable', /before the end/))
    reader.read(end())
    reader.finish()
  })

  for (const [what, lines, words] of [
    ['no JSON', ['hello'], /malformed JSON/],
    ['another object', ['{"packets":"1"}'], /other than the lines/],
    ['a time that is no number', [address({ spans: [{ fromNs: 'x', toNs: '2' }] })], /other than the lines/],
    ['an address that was not asked for', [address({ address: '10.0.0.2' })], /not asked for/],
    ['an address twice', [address(), address()], /twice/],
    ['a time that ends before it begins', [address({ spans: [{ fromNs: '2', toNs: '2' }] })], /impossible/],
    ['a last packet before the first', [address({ lastNs: '4' })], /impossible/],
    ['packets without a time', [address({ firstNs: undefined })], /impossible/],
    ['nothing about an address', [address({ ...NOT_COUNTED })], /impossible/],
    ['a search for fewer addresses', [end({ addresses: 1 })], /1 addresses instead of 2/],
    ['a line after the last', [end(), address()], /other than the lines/],
  ] as const)
    test(`fails with ${what}`, () => {
      const reader = new SeenReader('a', asked())
      assert.throws(() => lines.map((line) => reader.read(line)), refusal('device-protocol', words))
    })

  test('without Verify there is neither progress nor a count', () => {
    const reader = () => new SeenReader('a', asked({ verify: false }))
    const spans = [{ fromNs: '1', toNs: '2' }]
    assert.ok(reader().read(address({ ...NOT_COUNTED, spans })))
    assert.throws(() => reader().read(address({ spans })), refusal('device-protocol', /impossible/))
    assert.throws(() => reader().read('{"checkedBytes":"7"}'), refusal('device-protocol', /progress/))
  })

  test('a failure in a line is that of the device, in its words only if they are about the request', () => {
    const line = (code: string) => JSON.stringify({ error: { code, detail: 'at /store/x' } })
    const read = (code: string) => () => new SeenReader('a', asked()).read(line(code))
    assert.throws(read('aged-out'), refusal('aged-out', /at \/store\/x/))
    assert.throws(read('store-corrupt'), (error: unknown) => {
      return (
        error instanceof CapfleetError && error.message.includes('a') && !error.message.includes('/store/x')
      )
    })
    assert.throws(read('unauthenticated'), (error: unknown) => {
      return error instanceof CapfleetError && error.code !== 'unauthenticated'
    })
  })

  test('with a forced filter only counts are passed on', () => {
    const forced = () => new SeenReader('a', asked({ forced: ['udp'] }))
    assert.ok(forced().read(address()))
    assert.equal(forced().read('{"checkedBytes":"7"}'), undefined)
    for (const members of [{ packets: undefined }, { spans: [{ fromNs: '1', toNs: '2' }] }])
      assert.throws(() => forced().read(address(members)), refusal('device-protocol', /may not see/))
    assert.deepEqual(forced().read(end({ otherLinkTypes: [195] })), JSON.parse(end()))
    assert.deepEqual(forced().read(end({ agedOutBeforeNs: '1793610000000000001', otherLinkTypes: [195] })), {
      end: true,
      addresses: 2,
      complete: true,
      otherLinkTypes: [],
      agedOutBeforeNs: '1793610060000000000',
    })
  })
})
