// All interleavings of small worlds: two replicas, devices of one or two streams, crashes, pauses and
// restarts of Redis at every moment. LEASE_EXPLORER=whole adds the larger ones (some minutes, and
// node --max-old-space-size=8000).
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { explore } from '../../support/lease-explorer.ts'
import type { ModelRules } from '../../support/lease-model.ts'
import type { TaskPlan, WorldPlan } from '../../support/lease-world.ts'

const WHOLE = process.env.LEASE_EXPLORER === 'whole'

function task(devices: string, replica: string, requestClass: TaskPlan['class'] = 'interactive'): TaskPlan {
  return { devices: [...devices], replica, class: requestClass, user: devices }
}

const ONE_DEVICE = [task('a', 'x'), task('a', 'y'), task('a', 'y')]
/** Of one user: who asks first is first. */
const OVERLAPPING = [task('a', 'x'), task('ab', 'y'), task('b', 'x')].map((one) => ({ ...one, user: 'ann' }))
const FOUR = [task('a', 'x'), task('ab', 'y'), task('a', 'y'), task('b', 'x')]
const FOUR_WITH_BULK = [task('a', 'x', 'bulk'), task('a', 'y', 'bulk'), task('ab', 'x'), task('a', 'y')]

type Options = Partial<ModelRules> & { readonly faults: number }
function world(tasks: readonly TaskPlan[], { faults, ...rules }: Options): WorldPlan {
  return { rules: { slots: 2, ...rules }, tasks, faults }
}

const QUICK = {
  'four requests, narrow and wide': world(FOUR, { faults: 0 }),
  'four requests, bulk and interactive': world(FOUR_WITH_BULK, { faults: 0 }),
  'one device of one stream, a fault': world(ONE_DEVICE, { faults: 1, slots: 1 }),
  'one device of two streams, a fault': world(ONE_DEVICE, { faults: 1 }),
  'a wide request between narrow ones, a fault': world(OVERLAPPING, { faults: 1, slots: 1 }),
}
const LARGE = {
  'one device, two faults': world(ONE_DEVICE, { faults: 2 }),
  'a wide request between narrow ones, two faults': world(OVERLAPPING, { faults: 2, slots: 1 }),
  'four requests, narrow and wide, a fault': world(FOUR, { faults: 1 }),
  'four requests, bulk and interactive, a fault': world(FOUR_WITH_BULK, { faults: 1 }),
}

describe('the scheduler in all states of a small world', () => {
  for (const [name, plan] of Object.entries(WHOLE ? { ...QUICK, ...LARGE } : QUICK)) {
    test(`keeps its promises: ${name}`, (t) => {
      const { states, problem } = explore(plan)
      t.diagnostic(`${states} states`)
      assert.equal(problem, undefined)
      assert.ok(states > 10_000)
    })
  }
})

describe('the explorer finds a planted mistake', () => {
  const mistakes: readonly (readonly [keyof ModelRules, RegExp, readonly TaskPlan[], number])[] = [
    ['noReservation', /^I5/, OVERLAPPING, 1],
    ['clearsRegardless', /^I7/, ONE_DEVICE, 1],
    ['countsYoungGrants', /^I7/, ONE_DEVICE, 2],
    ['reopensUntold', /^I7/, ONE_DEVICE, 2],
    ['regrantsParts', /^I7/, OVERLAPPING, 1],
    ['grantsWhileRecovering', /^I9/, ONE_DEVICE, 1],
  ]
  for (const [mistake, expected, tasks, slots] of mistakes) {
    test(mistake, (t) => {
      const { states, problem } = explore(world(tasks, { faults: 1, slots, [mistake]: true }))
      t.diagnostic(`${states} states: ${problem}`)
      assert.match(problem ?? '', expected)
    })
  }
})
