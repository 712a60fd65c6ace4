import { BlockList, isIP } from 'node:net'

export const CIDR_RULE = 'must be an address with a prefix length, such as 10.0.0.0/8'

/** Whether it is an IP address with a prefix length. */
export function isCidr(text: string): boolean {
  const [address = '', prefix = '', ...rest] = text.split('/')
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  return rest.length === 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits
}

/**
 * A set of IPv4 and IPv6 networks. Node's BlockList treats "::ffff:127.0.0.1" as the IPv4 address that it represents.
 */
export class Networks {
  readonly #list = new BlockList()

  /** REQUIRES: each isCidr(). */
  constructor(cidrs: readonly string[]) {
    for (const cidr of cidrs) {
      const [address = '', prefix = ''] = cidr.split('/')
      this.#list.addSubnet(address, Number(prefix), familyOf(address))
    }
  }

  /** Returns false for anything that is not an address. */
  has(address: string): boolean {
    return isIP(address) !== 0 && this.#list.check(address, familyOf(address))
  }
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 4 ? 'ipv4' : 'ipv6'
}
