// Every sentence of the API on three routes: the device, /devices/{device} of a gateway, the fleet at its root.
import { after, before, describe, test } from 'node:test'
import { checksOn, walkClaim } from './check-claim.ts'
import { ROUTES } from './claim.ts'
import { CLAIMS } from './claims.ts'
import { type ContractStand, startContractStand } from './contract-stand.ts'

describe('the contract', () => {
  let stand: ContractStand

  before(async () => {
    stand = await startContractStand()
  })
  after(() => stand[Symbol.asyncDispose]())

  for (const claim of CLAIMS) {
    for (const route of ROUTES.filter((name) => checksOn(claim, name).length > 0)) {
      test(`${claim.id} ${route}: ${claim.claim}`, () => walkClaim(claim, route, stand))
    }
  }
})
