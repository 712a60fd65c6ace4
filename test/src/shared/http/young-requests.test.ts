import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../../../support/repository-files.ts'

const REQUESTS = 1_000
/** About 100 KiB of objects each. */
const REQUEST = `GET / HTTP/1.1\r\nHost: x\r\n${Array.from({ length: 900 }, (_, n) => `X-${n}: ${n}\r\n`).join('')}\r\n`
const PROMOTED_MAX_BYTES = 20 << 20

const SERVER = `
  const { createLog } = await import('./src/shared/base/log.ts')
  const { Metrics } = await import('./src/shared/base/metrics.ts')
  const { createHttpApp } = await import('./src/shared/http/http-app.ts')
  const { listen } = await import('./src/shared/http/http-server.ts')
  const app = createHttpApp({ log: createLog('test', 'silent'), metrics: new Metrics() })
  app.use((ctx) => { ctx.body = 'ok' })
  console.log((await listen(app.callback(), { host: '127.0.0.1', port: 0 }, new Metrics())).url)
`

/** Sends the requests one after another over one connection. */
async function sendAll(url: string): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  for (let sent = 0; sent < REQUESTS; sent += 1) {
    socket.write(REQUEST)
    await once(socket, 'data')
  }
  socket.destroy()
}

test('a request that has ended is not moved to the old generation of V8', async (t) => {
  // One line per garbage collection; `promoted` is the number of bytes moved to the old generation.
  const flags = ['--max-semi-space-size=16', '--trace-gc-nvp', '--input-type=module', '--eval', SERVER]
  const server = spawn(process.execPath, flags, {
    cwd: REPOSITORY_ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => server.kill('SIGKILL'))
  let collections = 0
  let promotedBytes = 0
  let sending: Promise<void> | undefined
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.startsWith('http://')) sending = sendAll(line).finally(() => server.kill('SIGKILL'))
    const promoted = /\bpromoted=(\d+)/.exec(line)?.[1]
    if (promoted === undefined || sending === undefined) continue
    collections += 1
    promotedBytes += Number(promoted)
  }
  await sending
  assert.ok(collections > 3, `${collections} collections`)
  assert.ok(promotedBytes < PROMOTED_MAX_BYTES, `${promotedBytes >> 20} MiB were promoted`)
})
