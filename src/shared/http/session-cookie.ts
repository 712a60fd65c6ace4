/** The cookie by which browsers keep a session of the page (RFC 6265). */
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'

const NAME = 'capfleet-session'
/** Browsers take one of this name from the host itself over TLS only: no other host of its domain can set it. */
const HOST_NAME = `__Host-${NAME}`
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d*)?$/i

/** A folder of an address; it stands in the cookie as it is. */
export const COOKIE_PATH = /^\/[\w.~!$&'()*+,=:@%/-]{0,255}$/

type Request = Pick<IncomingMessage, 'headers' | 'socket'>

/** What the cookie of a request says; undefined: it has none. */
export function sessionIn({ headers: { cookie } }: Pick<IncomingMessage, 'headers'>): string | undefined {
  const cookies = cookie?.split(';').map((one) => one.trim()) ?? []
  const found = [HOST_NAME, NAME].flatMap((name) => cookies.find((one) => one.startsWith(`${name}=`)) ?? [])
  return found[0]?.slice(found[0].indexOf('=') + 1)
}

/**
 * The header Set-Cookie. Over plain HTTP browsers take it from their own machine only. It has no Max-Age: the token tells
 * how long it is good, and who comes with an old one is known to be a browser.
 */
export function sessionCookie(token: string, path: string, req: Request): string {
  return cookieOf(token, path, req)
}

/** Removes it. */
export function noSessionCookie(path: string, req: Request): string {
  return `${cookieOf('', path, req)}; Max-Age=0`
}

function cookieOf(value: string, path: string, { headers, socket }: Request): string {
  const isEncrypted =
    (socket as TLSSocket).encrypted === true || /^https:/i.test(headers.origin ?? headers.referer ?? '')
  // A proxy on the same machine may ask by such a name for browsers elsewhere: they say how they have come.
  const isOfMachine = LOOPBACK.test(headers.host ?? '') && !isEncrypted
  const name = path === '/' && !isOfMachine ? HOST_NAME : NAME
  return `${name}=${value}; Path=${path}; HttpOnly; SameSite=Strict${isOfMachine ? '' : '; Secure'}`
}

/**
 * Whether the page has asked, and not whoever types an address: a browser answers a challenge with a window of its own,
 * over the page. Browsers say what they ask for by Sec-Fetch-Dest, but not over plain HTTP.
 */
export function isAskedByPage({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const dest = headers['sec-fetch-dest']
  if (dest !== undefined) return dest === 'empty'
  return headers[FORM_HEADER.toLowerCase()] !== undefined || sessionIn({ headers }) !== undefined
}

/** By which the page shows with each change that it is the page. */
export const FORM_HEADER = 'X-Capfleet-Form'
