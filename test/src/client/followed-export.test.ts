import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientFailure } from '../../../src/client/client-failure.ts'
import { nodeTransport } from '../../../src/client/command/access/node-transport.ts'
import { watchExport } from '../../../src/client/followed-export.ts'
import { GatewayClient } from '../../../src/client/gateway-client.ts'
import { startStubGateway } from '../../support/servers/stub-gateway.ts'

const event = (id: number, state: string) =>
  `id: ${id}\nevent: export\ndata: {"id":"e1","state":"${state}"}\n\n`

test('continues after the last event when the gateway is replaced, until the export has ended', async () => {
  const lastIds: (string | undefined)[] = []
  await using stub = await startStubGateway({
    'GET /v1/exports/e1/events': (req, res) => {
      const lastId = req.headers['last-event-id'] as string | undefined
      lastIds.push(lastId)
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      if (lastId === undefined) {
        // Broken off inside an event.
        res.write(`: still there\n\n${event(1, 'queued')}${event(2, 'running')}id: 3\nev`, () =>
          res.destroy(),
        )
      } else if (lastId === '2') res.end(event(3, 'running'))
      else res.write(event(4, 'complete'))
    },
  })
  const client = new GatewayClient({ url: stub.url }, nodeTransport())
  const failures: string[] = []
  const states: string[] = []
  const options = {
    signal: new AbortController().signal,
    pause: async (failure: ClientFailure) => void failures.push(failure.code),
  }
  for await (const { state } of watchExport(client, 'e1', options)) states.push(state)
  assert.deepEqual(states, ['queued', 'running', 'running', 'complete'])
  assert.deepEqual(lastIds, [undefined, '2', '3'])
  assert.deepEqual(failures, ['connection-broken', 'connection-broken'])
})

test('an export that is not there is not asked for again', async () => {
  await using stub = await startStubGateway({})
  const client = new GatewayClient({ url: stub.url }, nodeTransport())
  const options = {
    signal: new AbortController().signal,
    pause: () => Promise.reject(new Error('it paused')),
  }
  await assert.rejects(
    async () => await watchExport(client, 'e1', options).next(),
    (error) => error instanceof ClientFailure && error.kind === 'not-found',
  )
})
