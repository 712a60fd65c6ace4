import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuseCrossSite } from '../../../src/http/cross-site.ts'

const HOST = { host: 'gateway.example:8080' }

for (const headers of [
  {},
  { 'sec-fetch-site': 'same-origin' },
  { 'sec-fetch-site': 'none' },
  { 'sec-fetch-site': 'same-origin', origin: 'https://outside.example' },
  { origin: 'http://gateway.example:8080' },
  { origin: 'https://GATEWAY.example:8080' },
  { referer: 'http://gateway.example:8080/docs?x=1' },
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
]) {
  test(`a page of another site may not: ${JSON.stringify(headers)}`, () => {
    assert.throws(() => refuseCrossSite({ headers: { ...HOST, ...headers } }), { code: 'cross-site' })
  })
}

test('a default port that the browser leaves out is the same host', () => {
  refuseCrossSite({ headers: { host: 'gateway.example', origin: 'http://gateway.example' } })
  refuseCrossSite({ headers: { host: 'gateway.example', origin: 'https://gateway.example' } })
})
