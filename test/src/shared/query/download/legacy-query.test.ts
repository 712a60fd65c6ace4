import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import type { DownloadKind, DownloadQuery } from '../../../../../src/shared/query/download/download-query.ts'
import { formatDownloadQuery } from '../../../../../src/shared/query/download/format-download-query.ts'
import { parseLegacyQuery } from '../../../../../src/shared/query/download/legacy-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'

const parse = (kind: DownloadKind, raw: string): DownloadQuery =>
  parseLegacyQuery(kind, parseQueryString(raw), { zone: 'UTC', nowNs: 1_795_000_000_000_000_000n })

test('TSMode is the unit of a time range, nanoseconds without it', () => {
  const beginOf = (more: string) => parse('timerange', `TSBegin=1&TSEnd=2${more}`).beginNs
  assert.deepEqual(['', '&TSMode=nsec', '&TSMode=usec', '&TSMode=msec', '&TSMode=sec'].map(beginOf), [
    1n,
    1n,
    1_000n,
    1_000_000n,
    1_000_000_000n,
  ])
})

test('TSMode of a time range is no clock of a vendor', () => {
  assert.throws(
    () => parse('timerange', 'TSBegin=1&TSEnd=2&TSMode=vendorA7130'),
    (error) =>
      error instanceof CapfleetError &&
      error.details.param === 'TSMode' &&
      /api\/v1\/pcap\/timerange/.test(error.message),
  )
})

test('a time range crosses two captures at most, the other kinds have their own', () => {
  assert.equal(parse('timerange', 'TSBegin=1&TSEnd=2').capturesMax, 2)
  assert.equal(parse('single', 'StreamName=a').capturesMax, undefined)
})

test('takes the documented parameters of each path', () => {
  const single = parse('single', 'StreamName=a&FilterRE=GET.*HTTP&FilterBPF=tcp&Compression=best&Strict=1')
  assert.deepEqual([single.filterRegex, single.compression], ['GET.*HTTP', 'best'])
  const split = parse('splittime', 'StreamName=a&Start=1ULL&Stop=2ULL&FilterBPF=tcp&FilterPort=3&&Strict=1')
  assert.deepEqual(split.frameFilter, [{ field: 'capture.port', op: '==', values: [3] }])
  const range = parse('timerange', 'TSBegin=1&TSEnd=2&TSMax=5&TSMode=nsec&Strict=1')
  assert.equal(range.tsMaxNs, 5n)
})

test('a formatted query reads back as it was', () => {
  for (const query of [
    parse('timerange', 'TSBegin=1&TSEnd=2&TSMax=5&TSUnit=nanos'),
    parse('splittime', 'StreamName=a&Start=1ULL&Stop=2ULL&FilterPort=3'),
  ]) {
    assert.deepEqual(parse(query.kind, formatDownloadQuery(query)), query)
  }
})
