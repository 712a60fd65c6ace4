import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { formatGatewayOptions } from '../../../../../src/shared/query/download/format-download-query.ts'
import {
  GATEWAY_PARAMETERS,
  type GatewayOptions,
  parseGatewayOptions,
} from '../../../../../src/shared/query/download/gateway-options.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'

const parse = (raw: string): GatewayOptions => parseGatewayOptions(parseQueryString(raw))
const ID = '0a1b2c3d-0000-4000-8000-0123456789ab'

test("without the gateway's parameters a download is plain", () => {
  assert.deepEqual(parse('StreamName=x&Slice=64&Resume=&Align=&OnError='), {
    onError: 'fail',
    align: false,
    digest: false,
    queueJob: false,
    resumeId: undefined,
    offsetBytes: undefined,
  })
})

test("reads each of the gateway's parameters", () => {
  const raw = `OnError=partial&Align=1&Digest=sha256&Queue=job&Resume=${ID}&Offset=24`
  assert.deepEqual(parse(raw), {
    onError: 'partial',
    align: true,
    digest: true,
    queueJob: true,
    resumeId: ID,
    offsetBytes: 24n,
  })
  assert.deepEqual(
    raw.split('&').map((pair) => pair.split('=')[0]),
    Object.values(GATEWAY_PARAMETERS).map(({ name }) => name),
  )
})

for (const [raw, param] of [
  ['OnError=ignore', 'OnError'],
  ['Align=yes', 'Align'],
  ['Digest=md5', 'Digest'],
  ['Queue=no', 'Queue'],
  ['Resume=../x', 'Resume'],
  [`Resume=${ID.toUpperCase()}`, 'Resume'],
  [`Resume=${ID}&Offset=-1`, 'Offset'],
  ['Offset=24', 'Offset'],
] as const) {
  test(`refuses ${raw} and names ${param}`, () => {
    assert.throws(
      () => parse(raw),
      (error) =>
        error instanceof CapfleetError && error.code === 'bad-parameter' && error.details.param === param,
    )
  })
}

test('what shapes the body is written as it is read, and no default', () => {
  const raw = `OnError=partial&Align=1`
  const options = parse(`${raw}&Digest=sha256&Resume=${ID}&Offset=24`)
  assert.equal(formatGatewayOptions(options), raw)
  assert.equal(formatGatewayOptions(parse('')), '')
})

test('the parser of the query does not report them as ignored at the gateway, also with Strict=1', () => {
  const context = { zone: 'UTC', nowNs: 0n, at: 'gateway' } as const
  const raw = `StreamName=x&OnError=partial&Digest=sha256&Strict=1`
  assert.deepEqual(parseDownloadQuery('single', parseQueryString(raw), context).ignored, [])
})
