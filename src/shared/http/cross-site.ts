import type { IncomingMessage } from 'node:http'
import { CapfleetError } from '../base/error.ts'

/**
 * Rejects changes that are requested by a page of another site: a link or an image there must not stop a capture with
 * the credentials stored in the browser. Browsers identify the origin of a request in Sec-Fetch-Site, but not over
 * plain HTTP; there Origin and Referer name the page, unless the page suppresses them. A browser request without any
 * of these may come from any page, so it is rejected too. Scripts send none of the three. Fails with cross-site.
 */
export function refuseCrossSite({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined) {
    if (site !== 'same-origin' && site !== 'none') throw crossSite(`Sec-Fetch-Site is ${String(site)}`)
    return
  }
  const { origin, referer, host } = headers
  for (const [name, page] of Object.entries({ Origin: origin, Referer: referer })) {
    if (page !== undefined && hostOf(page) !== host?.toLowerCase())
      throw crossSite(`the header ${name} names another host`)
  }
  if (origin === undefined && referer === undefined && isOfBrowser(headers))
    throw crossSite('the browser does not say which page sent the request')
}

/** Whether a browser has sent it, according to headers that no page can change. PowerShell pretends to be a browser. */
function isOfBrowser(headers: IncomingMessage['headers']): boolean {
  const { accept = '', 'user-agent': agent = '', 'upgrade-insecure-requests': upgrades } = headers
  const pretends = agent.includes('PowerShell')
  return upgrades !== undefined || accept.includes('text/html') || (agent.startsWith('Mozilla/') && !pretends)
}

/** In the form of the Host header, without the default port; undefined if it is not the address of a page. */
function hostOf(page: string): string | undefined {
  return URL.parse(page)?.host || undefined
}

function crossSite(reason: string): CapfleetError {
  return new CapfleetError(
    'cross-site',
    `a web page from another site sent this request (${reason}); open the address directly, or use a script`,
  )
}
