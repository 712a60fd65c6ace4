import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'

export interface Patience {
  readonly headers: Readonly<Record<string, string>>
  /** Leaves when it has more than so many bytes; 0 = before any, `leaveAfterMs` after asking. */
  readonly leaveAfterBytes: number
  readonly leaveAfterMs: number
}

/** Downloads `url`: the whole body, or undefined when this client left. Any other end rejects. */
export async function impatientDownload(url: string, patience: Patience): Promise<Buffer | undefined> {
  const req = request(url, { headers: patience.headers, agent: false })
  req.on('error', () => undefined)
  req.end()
  if (patience.leaveAfterBytes === 0) {
    await new Promise((resolve) => setTimeout(resolve, patience.leaveAfterMs))
    req.destroy()
    return undefined
  }
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  assert.equal(res.statusCode, 200)
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of res) {
    chunks.push(chunk)
    bytes += chunk.length
    // A body that is shorter than that ends before the client leaves; it is a whole one then.
    if (bytes > patience.leaveAfterBytes) {
      req.destroy()
      return undefined
    }
  }
  return Buffer.concat(chunks)
}
