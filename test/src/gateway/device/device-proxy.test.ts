import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { Device } from '../../../../src/gateway/device/device.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { PASSING_WAYS } from '../../../support/devices/passing-ways.ts'
import { httpGet } from '../../../support/http-get.ts'
import { pause } from '../../../support/pause.ts'

test('using http-proxy prints no deprecation warning and leaves util as it was', async () => {
  const script = `
    import util from 'node:util'
    const before = util._extend
    const { DeviceProxy } = await import(${JSON.stringify(new URL('../../../../src/gateway/device/device-proxy.ts', import.meta.url).href)})
    const { Device } = await import(${JSON.stringify(new URL('../../../../src/gateway/device/device.ts', import.meta.url).href)})
    const { Secret } = await import(${JSON.stringify(new URL('../../../../src/shared/base/secret.ts', import.meta.url).href)})
    import { createServer, get } from 'node:http'
    const listen = (handler) => new Promise((resolve) => { const s = createServer(handler).listen(0, () => resolve(s)) })
    const upstream = await listen((req, res) => res.end('answer'))
    const device = new Device({ name: 'd', url: 'http://127.0.0.1:' + upstream.address().port, user: 'u', password: new Secret('p') })
    const proxy = new DeviceProxy({ timeoutMs: 1000, ending: new AbortController().signal })
    const front = await listen((req, res) => proxy.forward(device, { target: '/x', caller: 'c' }, req, res))
    const answer = await fetch('http://127.0.0.1:' + front.address().port)
    console.log(await answer.text(), util._extend === before)
    process.exit(0)`
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    '--input-type=module',
    '-e',
    script,
  ])
  assert.equal(stdout, 'answer true\n')
  assert.equal(stderr, '')
})

for (const [name, open] of PASSING_WAYS) {
  test(`a device that keeps idle connections for a short time has all of the limit for its answer (${name})`, async () => {
    const slowMs = 1_200
    const lastOver = new Map<string | undefined, Socket>()
    const device = createServer((req, res) => {
      lastOver.set(req.url, req.socket)
      if (req.url === '/slow') void pause(slowMs, 'a slow answer').then(() => res.end('slow'))
      else res.end('quick')
    })
    // Announced to clients as "Keep-Alive: timeout=2".
    device.keepAliveTimeout = 2_000
    await once(device.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(device.address() as AddressInfo).port}`
    const target = new Device({ name: 'd', url, user: 'u', password: new Secret('p') })
    const pass = open(target, 10_000)
    const front = createServer((req, res) => {
      pass(req.url ?? '', req, res).catch((error) => res.writeHead(504).end(String(error)))
    })
    await once(front.listen(0, '127.0.0.1'), 'listening')
    try {
      const frontUrl = `http://127.0.0.1:${(front.address() as AddressInfo).port}`
      do {
        assert.equal(String((await httpGet(`${frontUrl}/quick`)).body), 'quick')
        assert.equal(String((await httpGet(`${frontUrl}/slow`)).body), 'slow')
        // If the machine was too busy for the second request to come in time, it had a new connection.
      } while (lastOver.get('/slow') !== lastOver.get('/quick'))
    } finally {
      for (const server of [front, device]) {
        server.closeAllConnections()
        server.close()
      }
    }
  })
}
