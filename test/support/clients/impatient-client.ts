import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'

export interface Patience {
  readonly headers: Readonly<Record<string, string>>
  /** Leaves after more than this many bytes; 0 = before any, `leaveAfterMs` after the request. */
  readonly leaveAfterBytes: number
  readonly leaveAfterMs: number
}

/** Downloads `url`: returns the whole body, or undefined if this client left. Any other end rejects. */
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
    // A shorter body ends before the client leaves, and counts as whole.
    if (bytes > patience.leaveAfterBytes) {
      req.destroy()
      return undefined
    }
  }
  return Buffer.concat(chunks)
}
