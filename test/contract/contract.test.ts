// Every sentence of the API on three routes: the device, /devices/{device} of a gateway, the fleet at its root.
import { after, before, describe, test } from 'node:test'
import { checksOn, walkClaim } from './check-claim.ts'
import { ROUTES } from './claim.ts'
import { CLAIMS } from './claims.ts'
import { type ContractStand, startContractStand } from './contract-stand.ts'

/** A row takes tens of milliseconds; those that wait, a few seconds. */
const ROW_LIMIT_MS = 20_000

/** Rows that fail until the product does what they say. */
const AWAITED: ReadonlySet<string> = new Set([
  'D1-15 below',
  'D1-15 fleet',
  'D1-51 fleet',
  'D3-12 fleet',
  'D4-25 below',
  'D8-2 below',
  'D8-3 below',
  'D8-4 fleet',
  'D8-9 device',
  'D8-9 below',
  'D8-9 fleet',
  'D8-12 below',
  'D8-12 fleet',
  'D8-28 fleet',
])

describe('the contract', { timeout: 240_000 }, () => {
  let stand: ContractStand

  before(async () => {
    stand = await startContractStand()
  })
  after(() => stand[Symbol.asyncDispose]())

  for (const claim of CLAIMS) {
    for (const route of ROUTES.filter((name) => checksOn(claim, name).length > 0)) {
      const todo = AWAITED.has(`${claim.id} ${route}`)
      test(`${claim.id} ${route}: ${claim.claim}`, { timeout: ROW_LIMIT_MS, todo }, () =>
        walkClaim(claim, route, stand),
      )
    }
  }
})
