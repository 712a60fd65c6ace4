import type { IncomingMessage } from 'node:http'
import { CapfleetError } from '../base/error.ts'

/**
 * Refuses what changes something when a page of another site asks for it: a link or an image there must
 * not stop a capture with the credentials that the browser keeps. Browsers tell by Sec-Fetch-Site who
 * asks, but not over plain HTTP; there Origin and Referer name the page. Scripts send none of the three.
 * Fails with cross-site.
 */
export function refuseCrossSite({ headers }: Pick<IncomingMessage, 'headers'>): void {
  const site = headers['sec-fetch-site']
  if (site !== undefined) {
    if (site !== 'same-origin' && site !== 'none') throw crossSite(`Sec-Fetch-Site is ${String(site)}`)
    return
  }
  for (const name of ['origin', 'referer'] as const) {
    const page = headers[name]
    if (page !== undefined && hostOf(page) !== headers.host?.toLowerCase())
      throw crossSite(`the header ${name === 'origin' ? 'Origin' : 'Referer'} names another host`)
  }
}

/** As the header Host has it, without the port that goes without saying; undefined = no page's address. */
function hostOf(page: string): string | undefined {
  return URL.parse(page)?.host || undefined
}

function crossSite(reason: string): CapfleetError {
  return new CapfleetError(
    'cross-site',
    `a web page of another site asked for this (${reason}); open the address directly, or use a script`,
  )
}
