import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planDownload, withinProfiles } from '../../../../../src/gateway/fleet/plan/plan.ts'
import { withinBounds } from '../../../../../src/gateway/fleet/plan/within-bounds.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'

const CONTEXT = { zone: 'UTC', nowNs: 0n }
const timerange = (more: string) =>
  withinBounds(
    parseDownloadQuery(
      'timerange',
      parseQueryString(`TSBegin=20231114_221320&TSEnd=20231114_221321&TSUnit=YYYYMMDD_HHMMSS&${more}`),
      CONTEXT,
    ),
    UNBOUNDED,
  )

test('one device does everything itself, with times in nanoseconds', () => {
  const plan = planDownload(timerange('Compression=zstd&FilterBPF=port+53&Slice=99'), ['a'], 4)
  assert.equal(plan.kind, 'relay')
  assert.deepEqual(plan.steps, [
    {
      device: 'a',
      isForced: false,
      target:
        '/api/v1/pcap/timerange?TSBegin=1700000000000000000&TSEnd=1700000001000000000&TSUnit=nanos&FilterBPF=port%2053&Slice=99&Compression=zstd',
    },
  ])
})

test('of several devices each sends its part uncompressed, filtered and bounded', () => {
  const plan = planDownload(
    timerange('Compression=zstd&FilterBPF=port+53&TSMax=5&TSResolution=usec'),
    ['b', 'a'],
    4,
  )
  assert.equal(plan.kind, 'merge')
  assert.deepEqual(
    plan.steps.map((step) => step.device),
    ['b', 'a'],
  )
  for (const { target } of plan.steps) {
    assert.match(target, /FilterBPF=port%2053&TSMax=5$/)
  }
})

test('limits of the whole are not those of one device', () => {
  const { steps } = planDownload(timerange('MaxPackets=9&MaxBytes=999'), ['a', 'b'], 4)
  for (const { target } of steps) assert.doesNotMatch(target, /Max/)
})

test('more devices than one download may have are refused', () => {
  assert.equal(planDownload(timerange(''), ['a', 'b'], 2).steps.length, 2)
  assert.throws(
    () => planDownload(timerange(''), ['a', 'b', 'c'], 2),
    (error) =>
      error instanceof CapfleetError && error.details.param === 'Device' && /3 .* 2/.test(error.message),
  )
})

test('a device with a slow link is asked for compressed packets when merged, not when relayed', () => {
  const merge = planDownload(timerange('Compression=best'), ['a', 'b', 'c'], 4)
  const settings = { a: 'zstd', b: 'fast', c: 'none' } as const
  const fleet = {
    kindOf: () => undefined,
    ignoredBy: () => undefined,
    fetchCompressionOf: (device: string) => settings[device as keyof typeof settings],
  }
  const { steps } = withinProfiles(merge, fleet)
  const asked = steps.map(({ target }) => new URLSearchParams(target.split('?')[1]).get('Compression'))
  assert.deepEqual(asked, ['zstd_fast', 'fast', null])
  const relay = planDownload(timerange(''), ['a'], 4)
  assert.deepEqual(withinProfiles(relay, fleet), relay)
})
