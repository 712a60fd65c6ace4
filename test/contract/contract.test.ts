// Every sentence of the API on three routes: the device, /devices/{device} of a gateway, the fleet at its root.
import { after, before, describe, test } from 'node:test'
import { checksOn, walkClaim } from './check-claim.ts'
import { ROUTES } from './claim.ts'
import { CLAIMS } from './claims.ts'
import { type ContractStand, startContractStand } from './contract-stand.ts'

/** A row takes tens of milliseconds; those that wait, a few seconds. */
const ROW_LIMIT_MS = 20_000

const IGNORED = 'what a device ignored is not passed on yet'
const AGED_OUT = 'at the root a capture that has aged out is unknown'
const ALIASES = 'below a device the gateway judges TSMode itself'
const EMPTY_NAME = 'a start under an empty name takes the default name'
const ANONYMOUS = 'the gateway has no auth.anonymousSystem yet'

/** Rows that the product does not fulfil yet, each with the reason: they are walked, and may fail. */
const AWAITED: ReadonlyMap<string, string> = new Map([
  ['D1-15 below', IGNORED],
  ['D1-15 fleet', IGNORED],
  ['D1-51 fleet', AGED_OUT],
  ['D3-12 fleet', AGED_OUT],
  ['D4-25 below', ALIASES],
  ['D8-2 below', ALIASES],
  ['D8-3 below', 'HEAD of a download does not ask the device'],
  ['D8-4 fleet', 'Capfleet-Time-Zone is not there yet'],
  ['D8-9 device', EMPTY_NAME],
  ['D8-9 below', EMPTY_NAME],
  ['D8-9 fleet', EMPTY_NAME],
  ['D8-12 below', ANONYMOUS],
  ['D8-12 fleet', ANONYMOUS],
  ['D8-28 fleet', AGED_OUT],
])

describe('the contract', { timeout: 240_000 }, () => {
  let stand: ContractStand

  before(async () => {
    stand = await startContractStand()
  })
  after(() => stand[Symbol.asyncDispose]())

  for (const claim of CLAIMS) {
    for (const route of ROUTES.filter((name) => checksOn(claim, name).length > 0)) {
      const todo = AWAITED.get(`${claim.id} ${route}`) ?? false
      test(`${claim.id} ${route}: ${claim.claim}`, { timeout: ROW_LIMIT_MS, todo }, () =>
        walkClaim(claim, route, stand),
      )
    }
  }
})
