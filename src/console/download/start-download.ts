/** A download by the browser itself: through a link that is valid once, because a link carries no credentials. */
import { answered, BASE, gateway, openAnswer, Problem } from '../base/ask-gateway.ts'
import { TEXTS } from '../texts.ts'

/** As much as the gateway takes for an address. */
const LINK_CHARACTERS_MAX = 60_000

/** Starts it. Errors are thrown before anything is saved. */
export async function startDownload(path: string): Promise<void> {
  if (path.length > LINK_CHARACTERS_MAX)
    throw new Problem({ code: 'bad-parameter', status: 400, detail: TEXTS.download.tooLongForLink })
  await tryDownload(path.slice(1))
  const ticket = await answered(gateway.POST('/v1/tickets', { params: { query: { For: path } } }))
  const link = document.createElement('a')
  link.href = new URL(ticket.url.slice(1), BASE).href
  // With this attribute a failure is a failed download, and does not replace the page.
  link.download = ''
  document.body.append(link)
  link.click()
  link.remove()
}

/** Throws the error of the download, found with HEAD, which fetches no packets but does not return the reason. */
async function tryDownload(path: string): Promise<void> {
  try {
    await openAnswer(path, { method: 'HEAD' })
  } catch {
    const leaving = new AbortController()
    await openAnswer(path, { signal: leaving.signal })
    // The download is possible after all, and its packets are not needed here.
    leaving.abort()
  }
}
