/** The cookie in which browsers keep a session of the page (RFC 6265). */
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'

const NAME = 'capfleet-session'
/** Browsers accept one of this name only from the host itself over TLS: no other host of its domain can set it. */
const HOST_NAME = `__Host-${NAME}`
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d*)?$/i

/** A path that needs no escaping in the cookie. */
export const COOKIE_PATH = /^\/[\w.~!$&'()*+,=:@%/-]{0,255}$/

type Request = Pick<IncomingMessage, 'headers' | 'socket'>

/** The contents of the request's cookie, or undefined if there is none. */
export function sessionIn({ headers: { cookie } }: Pick<IncomingMessage, 'headers'>): string | undefined {
  const cookies = cookie?.split(';').map((one) => one.trim()) ?? []
  const found = [HOST_NAME, NAME].flatMap((name) => cookies.find((one) => one.startsWith(`${name}=`)) ?? [])
  return found[0]?.slice(found[0].indexOf('=') + 1)
}

/**
 * The header Set-Cookie. Over plain HTTP browsers accept it from their own machine only. It has no Max-Age: the token
 * contains its expiry, and a request with an expired one is known to come from a browser.
 */
export function sessionCookie(token: string, path: string, req: Request): string {
  return cookieOf(token, path, req)
}

/** Removes the cookie. */
export function noSessionCookie(path: string, req: Request): string {
  return `${cookieOf('', path, req)}; Max-Age=0`
}

function cookieOf(value: string, path: string, { headers, socket }: Request): string {
  const isEncrypted =
    (socket as TLSSocket).encrypted === true || /^https:/i.test(headers.origin ?? headers.referer ?? '')
  // A proxy on the same machine may use such a name on behalf of remote browsers, which say how they connected.
  const isOfMachine = LOOPBACK.test(headers.host ?? '') && !isEncrypted
  const name = path === '/' && !isOfMachine ? HOST_NAME : NAME
  return `${name}=${value}; Path=${path}; HttpOnly; SameSite=Strict${isOfMachine ? '' : '; Secure'}`
}

/**
 * Whether the request comes from the page's script and not from a typed address: a browser answers a challenge with a
 * dialog of its own, over the page. Browsers say what they request in Sec-Fetch-Dest, but not over plain HTTP.
 */
export function isAskedByPage({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const dest = headers['sec-fetch-dest']
  if (dest !== undefined) return dest === 'empty'
  return headers[FORM_HEADER.toLowerCase()] !== undefined || sessionIn({ headers }) !== undefined
}

/** Header with which the page proves, for each change, that it is the page. */
export const FORM_HEADER = 'X-Capfleet-Form'
