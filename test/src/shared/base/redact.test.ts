import assert from 'node:assert/strict'
import { test } from 'node:test'
import { redacted } from '../../../../src/shared/base/redact.ts'
import { ownProcessorMs } from '../../../support/processes/processor-time.ts'

const CANARY = 'c4n4ry-S3cret_value'
const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl'

function logLine(fields: object): string {
  return `${JSON.stringify({ level: 30, ...fields, event: 'test.line' })}\n`
}

for (const [what, fields] of [
  ['a header', { headers: { authorization: `Basic ${btoa(`ann:${CANARY}`)}`, cookie: CANARY } }],
  ['a member by its name', { password: CANARY, secretAccessKey: CANARY, Token: `a"${CANARY}\\` }],
  ['a bearer token in a text', { message: `the device said: Bearer ${CANARY} is over` }],
  ['credentials in a text', { message: `Authorization: Basic ${btoa(`ann:${CANARY}`)}` }],
  ['a ticket in a query', { path: `/pcap/single?StreamName=a&Ticket=${CANARY}&x=1` }],
  ['a ticket that begins a query', { query: `ticket=${CANARY}` }],
  ['the password of an address', { url: `redis://default:${CANARY}@redis.example:6379/0` }],
  ['a signed token', { message: `invalid token ${JWT}` }],
  [
    'a private key with quotes behind it',
    { detail: `-----BEGIN PRIVATE KEY-----${CANARY}","level":10,"a":"` },
  ],
  ['a private key', { message: `-----BEGIN EC PRIVATE KEY-----\n${CANARY}\n-----END EC PRIVATE KEY-----` }],
] as const) {
  test(`takes out ${what}, and leaves a line of JSON`, () => {
    const line = redacted(logLine(fields))
    for (const secret of [CANARY, btoa(`ann:${CANARY}`), JWT]) assert.ok(!line.includes(secret), line)
    assert.match(line, /\[redacted\]/)
    assert.equal(JSON.parse(line).event, 'test.line')
  })
}

test('leaves everything else unchanged', () => {
  const line = logLine({
    requestId: '3f0c6c0e-6d0a-4f4e-9c11-0f6d8a4c2b1e',
    path: '/devices/lon1/pcap/single',
    url: 'https://192.0.2.1:8443/base',
    user: 'ann@example.org',
    message: 'the token is over; the password is wrong; token=',
    tokenId: 'a1b2c3',
  })
  assert.equal(redacted(line), line)
})

test('takes a time that grows with the line alone', () => {
  const before = ownProcessorMs()
  for (const piece of ['eyJ', 'eyJ.', '://', 'Bearer ', '?ticket=', '"password":"', '-----BEGIN ', '\\"'])
    redacted(piece.repeat(Math.floor(500_000 / piece.length)))
  assert.ok(ownProcessorMs() - before < 2_000)
})
