import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ApplianceContext } from '../../../appliance/appliance-parts.ts'
import { callerOf } from '../../../appliance/request/labelled-caller.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { callerNamed } from '../../support/access/test-caller.ts'

const from = (user: string | undefined, label?: string) =>
  callerOf({
    state: { caller: user === undefined ? undefined : callerNamed(user) },
    headers: label === undefined ? {} : { 'capfleet-caller': label },
  } as ApplianceContext)

test('a user without a label is one caller', () => {
  assert.deepEqual(from('ann'), from('ann'))
  assert.notEqual(from('ann').id, from('bob').id)
  assert.equal(from(undefined).user, '')
})

test('labels distinguish the callers of one user, and give no one another identity', () => {
  const [first, second, other] = [from('gateway', 'a'), from('gateway', 'b'), from('ann', 'a')]
  assert.equal(new Set([first.id, second.id, other.id, from('gateway').id]).size, 4)
  assert.deepEqual([first.user, second.user, other.user], ['gateway', 'gateway', 'ann'])
})

test('what is no label is refused by name', () => {
  for (const label of ['', 'two words', 'x'.repeat(65), 'ü', 'a\tb']) {
    assert.throws(
      () => from('ann', label),
      (error) => error instanceof CapfleetError && error.details.param === 'Capfleet-Caller',
      label,
    )
  }
})
