import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { Secret } from '../../../../src/shared/base/secret.ts'

test('a secret is only revealed on explicit request', () => {
  const secret = new Secret('hunter2')
  const holder = { password: secret, deep: [{ secret }] }
  const shown = [
    `${secret}`,
    String(secret),
    JSON.stringify(holder),
    inspect(holder, { depth: 9, showHidden: true }),
    inspect(secret, { customInspect: false, showHidden: true }),
    JSON.stringify({ ...secret }),
    JSON.stringify(structuredClone({ ...holder, deep: [] }, {})),
    Object.values(secret).join(),
  ].join('\n')
  assert.ok(!shown.includes('hunter2'), shown)
  assert.equal(`${secret}`, '[redacted]')
  assert.equal(JSON.stringify(holder.password), '"[redacted]"')
  assert.equal(secret.reveal(), 'hunter2')
})
