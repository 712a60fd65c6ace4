import { isIP } from 'node:net'
import { Networks } from '../../../shared/base/networks.ts'

/**
 * Addresses that a discovered name must not lead to: the gateway itself, its link, the metadata services of clouds,
 * and the forms of IPv6 that carry an IPv4 address to a translator.
 */
const REFUSED = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.0/24',
  '224.0.0.0/3',
  '::/96',
  '::ffff:0:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2001::/32',
  '2002::/16',
  'fd00:ec2::254/128',
  'fd00:c1::a9fe:a9fe/128',
  'fd20:ce::254/128',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]

/** Decides whether the gateway may connect to an address supplied by someone else. */
export class AddressRule {
  readonly #refused = new Networks(REFUSED)
  readonly #allowed: Networks

  /** Networks that are allowed in spite of the list above, as address/prefix. */
  constructor(allowCidrs: readonly string[]) {
    this.#allowed = new Networks(allowCidrs)
  }

  allows(address: string): boolean {
    // A zone ("fe80::1%eth0") would hide the address from the lists.
    if (isIP(address) === 0 || address.includes('%')) return false
    return this.#allowed.has(address) || !this.#refused.has(address)
  }
}
