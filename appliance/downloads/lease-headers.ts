/** The names of leases in the headers of a request; a device gives them no meaning. */
import { badParameter, quote } from '../../src/query/query-parameters.ts'
import type { ApplianceContext } from '../appliance-parts.ts'

/** Visible ASCII but the comma, which separates names. */
const LEASE_NAME = /^[!-+\--~]{1,200}$/

/** A device has four places; so many suspects nobody has. More would push out what was refused before. */
const REFUSED_AT_ONCE_MAX = 256

/** Whether the request asks for leases, and has them refused. */
export function asksForLeases(ctx: ApplianceContext): boolean {
  return ctx.headers['capfleet-refuse'] !== undefined
}

/** The lease of a download, from Capfleet-Lease. Fails with bad-parameter when it is no name. */
export function leaseOf(ctx: ApplianceContext): string | undefined {
  if (ctx.headers['capfleet-lease'] === undefined) return undefined
  return checkName('Capfleet-Lease', ctx.get('Capfleet-Lease'))
}

/**
 * The names in Capfleet-Refuse, maybe none; undefined: there is no such header. Fails with
 * bad-parameter when one of them is no name, or there are more than 256.
 */
export function leasesToRefuse(ctx: ApplianceContext): readonly string[] | undefined {
  if (!asksForLeases(ctx)) return undefined
  // A list may have empty elements (RFC 9110 section 5.6.1).
  const names = ctx
    .get('Capfleet-Refuse')
    .split(/[ \t]*,[ \t]*/)
    .filter((name) => name !== '')
  if (names.length > REFUSED_AT_ONCE_MAX)
    throw badParameter(
      'Capfleet-Refuse',
      `must name at most ${REFUSED_AT_ONCE_MAX} leases, got ${names.length}`,
    )
  return names.map((name) => checkName('Capfleet-Refuse', name))
}

function checkName(header: string, name: string): string {
  if (LEASE_NAME.test(name)) return name
  throw badParameter(header, `must name a lease by 1 to 200 visible ASCII characters, got ${quote(name)}`)
}
