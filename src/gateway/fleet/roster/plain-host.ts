import { isIP } from 'node:net'

const HOST_NAME = /^[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/

/**
 * Whether `host`, a name or an address (IPv6 without brackets), means the same in a URL. "2130706433", "0x7f.1" and
 * "x@127.0.0.1" are names to DNS, but lead elsewhere as part of a URL.
 */
export function isPlainHost(host: string): boolean {
  if (isIP(host) === 6) return !host.includes('%')
  return HOST_NAME.test(host) && URL.parse(`http://${host}/`)?.hostname === host.toLowerCase()
}

const HTTP_URL = /^https?:\/\/(?:\[([^\]]*)\]|([^:/?#@]*))(?::\d{1,5})?(\/[A-Za-z0-9._~/-]*)?$/i

/** Whether `text` is an HTTP address and nothing more: a plain host, optionally a port, optionally a path. */
export function isPlainUrl(text: string): boolean {
  const [, address, name = '', path = '/'] = HTTP_URL.exec(text) ?? []
  const url = URL.parse(text)
  return url !== null && url.port !== '0' && url.pathname === path && isPlainHost(address ?? name)
}
