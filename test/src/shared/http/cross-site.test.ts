import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuseCrossSite } from '../../../../src/shared/http/cross-site.ts'

const HOST = { host: 'gateway.example:8080' }

for (const headers of [
  {},
  { 'sec-fetch-site': 'same-origin' },
  { 'sec-fetch-site': 'none' },
  { 'sec-fetch-site': 'same-origin', origin: 'https://outside.example' },
  { origin: 'http://gateway.example:8080' },
  { origin: 'https://GATEWAY.example:8080' },
  { referer: 'http://gateway.example:8080/docs?x=1' },
  { 'user-agent': 'curl/8.5.0', accept: '*/*' },
  { 'user-agent': 'Mozilla/5.0 (Windows NT; en-US) WindowsPowerShell/5.1.19041.1' },
  { 'user-agent': 'Mozilla/5.0 (X11) Firefox/140.0', referer: 'http://gateway.example:8080/' },
  { 'user-agent': 'Mozilla/5.0 (X11) Firefox/140.0', 'sec-fetch-site': 'none', accept: 'text/html' },
]) {
  test(`a script, or a page of the same host, may change something: ${JSON.stringify(headers)}`, () => {
    refuseCrossSite({ headers: { ...HOST, ...headers } })
  })
}

for (const headers of [
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
  { 'sec-fetch-site': 'anything' },
  { origin: 'http://evil.example' },
  { origin: 'http://gateway.example' },
  { origin: 'http://gateway.example:8081' },
  { origin: 'null' },
  { origin: '' },
  { referer: 'http://evil.example/gateway.example:8080' },
  { referer: 'http://gateway.example:8080@evil.example/' },
  { origin: 'http://gateway.example:8080', referer: 'http://evil.example/' },
  { 'user-agent': 'Mozilla/5.0 (X11) Firefox/140.0', accept: 'image/avif,image/webp,*/*' },
  { 'user-agent': 'x', accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' },
  { 'upgrade-insecure-requests': '1' },
]) {
  test(`a page of another site may not: ${JSON.stringify(headers)}`, () => {
    assert.throws(() => refuseCrossSite({ headers: { ...HOST, ...headers } }), { code: 'cross-site' })
  })
}

test('a default port that the browser leaves out is the same host', () => {
  refuseCrossSite({ headers: { host: 'gateway.example', origin: 'http://gateway.example' } })
  refuseCrossSite({ headers: { host: 'gateway.example', origin: 'https://gateway.example' } })
})
