/**
 * An HTTP server with answers set by the test, for what a real gateway would not do on demand: break off, be replaced.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface StubGateway extends AsyncDisposable {
  readonly url: string
  /** "GET /v1/devices", in order of arrival. */
  readonly asked: string[]
}

export type StubAnswer = (req: IncomingMessage, res: ServerResponse) => void

/** `answers` by method and path, without the query string; anything else is 404. */
export async function startStubGateway(answers: Readonly<Record<string, StubAnswer>>): Promise<StubGateway> {
  const asked: string[] = []
  const server = createServer((req, res) => {
    asked.push(`${req.method} ${req.url}`)
    const answer = answers[`${req.method} ${req.url?.replace(/\?.*/, '')}`]
    if (answer !== undefined) return answer(req, res)
    res.writeHead(404).end(JSON.stringify({ code: 'not-found', detail: 'there is nothing there' }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
