/** A download as a browser does it: by a link that is good once, because a link cannot prove who follows it. */
import { answered, BASE, gateway, openAnswer } from '../base/ask-gateway.ts'

/** Begins it. What is wrong with it is thrown before anything is saved. */
export async function startDownload(path: string): Promise<void> {
  await openAnswer(path.slice(1), { method: 'HEAD' })
  const ticket = await answered(gateway.POST('/v1/tickets', { params: { query: { For: path } } }))
  const link = document.createElement('a')
  link.href = new URL(ticket.url.slice(1), BASE).href
  // A failure then is a failed download, and no other page in place of this one.
  link.download = ''
  document.body.append(link)
  link.click()
  link.remove()
}
