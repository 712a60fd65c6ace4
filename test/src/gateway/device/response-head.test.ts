import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MalformedAnswer, parseResponseHead } from '../../../../src/gateway/device/response-head.ts'

test('reads status, headers and framing of an answer', () => {
  const head = parseResponseHead(
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nA: 1\t \r\na:2\r\n__proto__: x',
  )
  assert.equal(head.status, 200)
  assert.equal(head.framing, 'chunked')
  assert.equal(head.headers.a, '1, 2')
  assert.equal(Object.keys(head.headers).includes('__proto__'), true)
  assert.equal(parseResponseHead('HTTP/1.1 503 \r\nContent-Length: 12').framing, 12)
  assert.equal(parseResponseHead('HTTP/1.0 200').framing, 'until-close')
})

for (const [what, text] of [
  ['no status line', 'PCAP'],
  ['HTTP/2', 'HTTP/2.0 200 OK'],
  ['a status of two digits', 'HTTP/1.1 20 OK'],
  ['both lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked'],
  ['two equal Content-Lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3'],
  ['a list of Content-Lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3, 3'],
  ['a signed Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: +3'],
  ['an empty Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length:'],
  ['a hexadecimal Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: 0x10'],
  ['a Content-Length beyond all measure', 'HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999'],
  ['another transfer coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked'],
  ['chunked twice', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked'],
  ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked'],
  ['a header line without a name', 'HTTP/1.1 200 OK\r\n: 1'],
  ['a control character after spaces', 'HTTP/1.1 200 OK\r\nA:  \x01'],
  ['a folded header', 'HTTP/1.1 200 OK\r\nA: 1\r\n  2'],
  ['a space before the colon', 'HTTP/1.1 200 OK\r\nContent-Length : 3'],
  ['a bare line feed', 'HTTP/1.1 200 OK\r\nA: 1\nContent-Length: 3'],
  ['a bare carriage return', 'HTTP/1.1 200 OK\r\nA: 1\rB: 2'],
  ['a NUL', 'HTTP/1.1 200 OK\r\nA: \0'],
  ['a line without a colon', 'HTTP/1.1 200 OK\r\nA'],
  ['an empty line among its headers', 'HTTP/1.1 200 OK\r\nA: 1\r\n\r\nB: 2'],
  ['a status line that ends with a bare line feed', 'HTTP/1.1 200 OK\nA: 1'],
  ['half a line end', 'HTTP/1.1 200 OK\r\nA: 1\r'],
] as const) {
  test(`refuses an answer with ${what}`, () => {
    assert.throws(() => parseResponseHead(text), MalformedAnswer)
  })
}
