import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createLog } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { createHttpApp } from '../../../../src/shared/http/http-app.ts'
import { listen } from '../../../../src/shared/http/http-server.ts'

async function timingOf(t: TestContext, path: string): Promise<string> {
  const app = createHttpApp({ log: createLog('test', 'silent'), metrics: new Metrics() })
  app.use((ctx) => {
    if (ctx.path === '/json') ctx.body = { here: true }
    if (ctx.path !== '/stream') return
    ctx.respond = false
    ctx.state.timing.note('queue', 12.34)
    ctx.res.writeHead(200, { 'Content-Type': 'text/plain' })
    ctx.state.timing.note('late', 1)
    ctx.res.end('here')
  })
  const server = await listen(app.callback(), { host: '127.0.0.1', port: 0 }, new Metrics())
  t.after(() => server.close(0))
  return (await fetch(server.url + path)).headers.get('server-timing') ?? ''
}

test('an answer reports its time up to the head, whatever writes that, and so does an error', async (t) => {
  assert.match(await timingOf(t, '/json'), /^total;dur=\d+\.\d$/)
  assert.match(await timingOf(t, '/stream'), /^queue;dur=12\.3, total;dur=\d+\.\d$/)
  assert.match(await timingOf(t, '/nothing'), /^total;dur=\d+\.\d$/)
})
