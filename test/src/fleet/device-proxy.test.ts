import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

test('using http-proxy prints no deprecation warning and leaves util as it was', async () => {
  const script = `
    import util from 'node:util'
    const before = util._extend
    const { DeviceProxy } = await import(${JSON.stringify(new URL('../../../src/fleet/device-proxy.ts', import.meta.url).href)})
    const { Device } = await import(${JSON.stringify(new URL('../../../src/fleet/device.ts', import.meta.url).href)})
    import { createServer, get } from 'node:http'
    const listen = (handler) => new Promise((resolve) => { const s = createServer(handler).listen(0, () => resolve(s)) })
    const upstream = await listen((req, res) => res.end('answer'))
    const device = new Device({ name: 'd', url: 'http://127.0.0.1:' + upstream.address().port, user: 'u', password: 'p' })
    const proxy = new DeviceProxy({ timeoutMs: 1000 })
    const front = await listen((req, res) => proxy.forward(device, '/x', req, res))
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
