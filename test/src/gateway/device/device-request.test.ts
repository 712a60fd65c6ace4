import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Device } from '../../../../src/gateway/device/device.ts'
import { callerLabel, formatRequest } from '../../../../src/gateway/device/device-request.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'

test('a user has one label, whatever the name holds, and another user another', () => {
  const names = ['ann', 'bob', '', 'Ünal', 'a, b', 'x'.repeat(1_000)]
  const labels = names.map(callerLabel)
  assert.equal(new Set(labels).size, names.length)
  assert.deepEqual(labels, names.map(callerLabel))
  for (const label of labels) assert.match(label, /^[0-9a-f]{16}$/)
})

test('a request is one request, whatever its target and its headers hold', () => {
  const device = new Device({ name: 'nyc1', url: 'http://nyc1/base/', user: 'u', password: new Secret('p') })
  const text = formatRequest(device, { target: '/x?a=b', headers: { 'capfleet-caller': '1.red' } })
  assert.deepEqual(text.split('\r\n'), [
    'GET /base/x?a=b HTTP/1.1',
    'host: nyc1',
    `authorization: Basic ${btoa('u:p')}`,
    'capfleet-caller: 1.red',
    '',
    '',
  ])
  for (const target of ['/x HTTP/1.1\r\n\r\nGET /y', '/x y', '/x\n', '/\u0100'])
    assert.throws(() => formatRequest(device, { target, headers: {} }), { code: 'bad-parameter' })
  for (const value of ['1\r\nx: y', '1\n', '\u0100'])
    assert.throws(() => formatRequest(device, { target: '/', headers: { 'capfleet-caller': value } }))
})

test('a GET with an address longer than programs accept is sent as a form, and a shorter one is not', () => {
  const device = new Device({ name: 'nyc1', url: 'http://nyc1/', user: 'u', password: new Secret('p') })
  const headers = { te: 'trailers' }
  const query = `TSBegin=1&FilterAddresses=${'10.0.0.1%2C'.repeat(6_000)}10.0.0.2`
  const long = formatRequest(device, { target: `/api/v1/pcap/timerange?${query}`, headers })
  const [head = '', body] = long.split('\r\n\r\n')
  assert.match(head, /^POST \/api\/v1\/pcap\/timerange HTTP\/1\.1\r\n/)
  assert.match(
    head,
    new RegExp(`\\r\\ncontent-type: application/x-www-form-urlencoded\\r\\ncontent-length: ${query.length}$`),
  )
  assert.equal(body, query)
  assert.match(
    formatRequest(device, { target: '/api/v1/pcap/timerange?TSBegin=1', headers }),
    /^GET .*\r\n\r\n$/s,
  )
})
