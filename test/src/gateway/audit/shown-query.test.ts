import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shownQuery } from '../../../../src/gateway/audit/shown-query.ts'

for (const [what, raw, shown] of [
  [
    'leaves an ordinary query as it is',
    'Device=lon1&TSBegin=-15m&TSEnd=now&',
    'Device=lon1&TSBegin=-15m&TSEnd=now&',
  ],
  [
    'takes secrets out by name',
    'ticket=abc&a=1&Access%5FToken=x',
    'ticket=[redacted]&a=1&Access%5FToken=[redacted]',
  ],
  ['takes a token out of a value', 'a=eyJhbGciOi.eyJzdWIi.c2ln&b=2', 'a=[redacted]&b=2'],
  ['lets no pair hide another one', 'rand=://&Device=lon1&x=@', 'rand=://&Device=lon1&x=@'],
  ['lets a pair hide itself alone', 'rand=://me@x&Device=lon1', 'rand=://[redacted]@x&Device=lon1'],
  [
    'lets no private key hide what follows',
    'a=-----BEGIN PRIVATE KEY-----&Device=lon1',
    'a=[redacted]&Device=lon1',
  ],
  [
    'cuts each value by itself',
    `rand=${'r'.repeat(5_000)}&Device=lon1`,
    `rand=${'r'.repeat(256)}... (5000 characters)&Device=lon1`,
  ],
  ['cuts names', `${'n'.repeat(100)}=1&b=2`, `${'n'.repeat(64)}... (100 characters)=1&b=2`],
] as const) {
  test(what, () => assert.equal(shownQuery(raw), shown))
}

test('counts the pairs beyond those that any request may have', () => {
  const raw = Array.from({ length: 100 }, (_, at) => `p${at}=1`).join('&')
  assert.equal(shownQuery(raw), `${raw.split('&').slice(0, 64).join('&')}&... (100 pairs)`)
})
