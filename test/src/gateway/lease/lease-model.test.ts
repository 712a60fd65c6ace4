// The Lua scripts against the model, with the same random commands of three replicas.
//
//   LEASE_WALK_STEPS=1000000 node --test test/src/gateway/lease/lease-model.test.ts
//
// is the long run.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelRules } from '../../../support/lease/lease-model.ts'
import { LeaseWalk } from '../../../support/lease/lease-walk.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const STEPS = Number(process.env.LEASE_WALK_STEPS ?? 4_000)
const IS_LONG = process.env.CAPFLEET_LONG === '1'
/** A mistake shows after some hundreds of steps, a rare one after some thousands; then the walk ends. */
const MISTAKE_STEPS = 300_000

async function walk(steps: number, rules: ModelRules, say: (text: string) => void): Promise<void> {
  await using server = await TempRedis.create()
  const random = seededRandom()
  say(`SEED=${random.seed}`)
  const walk = new LeaseWalk(server.url, random, rules)
  try {
    await walk.run(steps)
    say([...walk.counts].map(([name, count]) => `${name} ${count}`).join(', '))
  } finally {
    walk.close()
  }
}

test('the scripts do what the model does, command by command', (t) =>
  walk(STEPS, { streams: 3 }, (text) => t.diagnostic(text)))

/** They show that the comparison notices mistakes: the others do so at night. */
const MISTAKES = [
  'noReservation',
  'releasesLaterAttempts',
  'bulkReservesAll',
  'grantsWhileRecovering',
  'clearsRegardless',
] as const

for (const mistake of MISTAKES.slice(0, IS_LONG ? MISTAKES.length : 2)) {
  test(`the comparison finds a model with another rule: ${mistake}`, async (t) => {
    await assert.rejects(
      walk(MISTAKE_STEPS, { streams: 3, [mistake]: true }, (text) => t.diagnostic(text)),
      assert.AssertionError,
    )
  })
}
