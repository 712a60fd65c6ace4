/** Where requests come from, for logins, limits and the audit. */
import type { IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { Networks } from '../base/networks.ts'

/**
 * The identity of a caller of whom only the connection is known. IPv6 callers have a /64 to themselves; an IPv4
 * address is the same whether or not it is written as IPv6.
 */
export function addressOf({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): string {
  if (!remoteAddress.includes(':')) return remoteAddress
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(remoteAddress)?.[1]
  return mapped ?? networkOf(remoteAddress)
}

/** The first four groups, as "2001:db8:0:1::/64". */
function networkOf(address: string): string {
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::')
  const groups = head === '' ? [] : head.split(':')
  const behind = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - behind.length)
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...behind]
  return `${all.slice(0, 4).join(':')}::/64`
}

/**
 * Proxies in front of the program whose information about their clients is trusted. Otherwise all users behind one
 * would count as a single address, and share its limits.
 */
export class TrustedProxies {
  readonly #networks: Networks

  /** Networks as address/prefix length. */
  constructor(cidrs: readonly string[]) {
    this.#networks = new Networks(cidrs)
  }

  /** Whether the caller used TLS: to the program itself, or to the first proxy, which X-Forwarded-Proto names first. */
  isEncrypted({ headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>): boolean {
    if ((socket as TLSSocket).encrypted === true) return true
    const [first = ''] = headerText(headers['x-forwarded-proto']).split(',', 1)
    return this.isOne(socket) && first.trim().toLowerCase() === 'https'
  }

  isOne({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): boolean {
    return this.#networks.has(remoteAddress)
  }

  /**
   * addressOf() the last entry in the list that is not a trusted proxy. Each proxy appends the address of its client
   * to X-Forwarded-For; anything before that is unverified.
   */
  callerOf({ headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>): string {
    let { remoteAddress = '' } = socket
    const told = headerText(headers['x-forwarded-for']).split(',')
    while (this.#networks.has(remoteAddress)) {
      const before = withoutPort(told.pop()?.trim() ?? '')
      if (isIP(before) === 0) break
      remoteAddress = before
    }
    return addressOf({ remoteAddress })
  }
}

/** Node joins repeated headers of this name with commas. */
function headerText(header: string | readonly string[] = ''): string {
  return String(header)
}

/** Some proxies include the port: 192.0.2.1:4711, [2001:db8::1]:4711. */
function withoutPort(text: string): string {
  const [, inBrackets, withDots] = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/.exec(text) ?? []
  return inBrackets ?? withDots ?? text
}
