/** A download as a browser does it: by a link that is good once, because a link cannot prove who follows it. */
import { answered, BASE, gateway, openAnswer } from '../base/ask-gateway.ts'

/** Begins it. What is wrong with it is thrown before anything is saved. */
export async function startDownload(path: string): Promise<void> {
  await tryDownload(path.slice(1))
  const ticket = await answered(gateway.POST('/v1/tickets', { params: { query: { For: path } } }))
  const link = document.createElement('a')
  link.href = new URL(ticket.url.slice(1), BASE).href
  // A failure then is a failed download, and no other page in place of this one.
  link.download = ''
  document.body.append(link)
  link.click()
  link.remove()
}

/** Throws what is wrong with it: by HEAD, for which no packet is fetched, and whose answer cannot say why it fails. */
async function tryDownload(path: string): Promise<void> {
  try {
    await openAnswer(path, { method: 'HEAD' })
  } catch {
    const leaving = new AbortController()
    await openAnswer(path, { signal: leaving.signal })
    // It can be had after all, and its packets are not for here.
    leaving.abort()
  }
}
