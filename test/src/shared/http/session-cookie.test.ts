import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import {
  COOKIE_PATH,
  isAskedByPage,
  noSessionCookie,
  sessionCookie,
  sessionIn,
} from '../../../../src/shared/http/session-cookie.ts'

const asked = (host: string, encrypted = false) => ({
  headers: { host },
  socket: Object.assign(new Socket(), { encrypted }),
})

for (const host of ['localhost', 'LOCALHOST:8080', '127.0.0.1:1', '127.9.8.7', '[::1]', '[::1]:8080']) {
  test(`a browser on the machine itself (${host}) keeps the cookie without TLS`, () => {
    assert.equal(
      sessionCookie('T', '/a/', asked(host)),
      'capfleet-session=T; Path=/a/; HttpOnly; SameSite=Strict',
    )
  })
}

for (const host of ['gateway.example', '192.0.2.1:8080', 'localhost.example', '127.0.0.1.example', '']) {
  test(`any other (${host}) sends it over TLS only`, () => {
    assert.match(sessionCookie('T', '/', asked(host)), /; Secure$/)
  })
}

test('over TLS it is for TLS only, on the machine itself too', () => {
  assert.match(sessionCookie('T', '/', asked('localhost', true)), /; Secure$/)
})

test('a client that uses https, through a proxy on the machine itself, keeps it for https', () => {
  for (const header of [{ origin: 'https://gw.example' }, { referer: 'https://gw.example/tools/' }]) {
    const { headers, socket } = asked('127.0.0.1:8080')
    assert.match(sessionCookie('T', '/', { headers: { ...headers, ...header }, socket }), /; Secure$/)
  }
  const local = { host: 'localhost:8080', origin: 'http://localhost:8080' }
  assert.doesNotMatch(sessionCookie('T', '/', { ...asked('localhost'), headers: local }), /Secure/)
})

test('for a whole host over TLS no other host can set it; below a path, or without TLS, browsers would refuse that', () => {
  const nameOf = (path: string, host: string) => sessionCookie('T', path, asked(host)).split('=')[0]
  assert.equal(nameOf('/', 'gateway.example'), '__Host-capfleet-session')
  assert.equal(nameOf('/a/', 'gateway.example'), 'capfleet-session')
  assert.equal(nameOf('/', 'localhost'), 'capfleet-session')
  assert.match(noSessionCookie('/', asked('gateway.example')), /^__Host-capfleet-session=; .*Max-Age=0$/)
})

test('it is removed where it was kept', () => {
  assert.equal(
    noSessionCookie('/a/', asked('localhost')),
    'capfleet-session=; Path=/a/; HttpOnly; SameSite=Strict; Max-Age=0',
  )
})

for (const [cookie, token] of [
  ['capfleet-session=a.b.c', 'a.b.c'],
  ['x=y; capfleet-session=a.b.c; z=1', 'a.b.c'],
  ['x=y;capfleet-session=a=b', 'a=b'],
  ['x-capfleet-session=a', undefined],
  ['__Host-capfleet-session=a.b', 'a.b'],
  ['capfleet-session=foreign; __Host-capfleet-session=own', 'own'],
  ['capfleet-session', undefined],
  ['', undefined],
  [undefined, undefined],
] as const) {
  test(`of the cookies ${cookie} the session is ${token}`, () => {
    assert.equal(sessionIn({ headers: cookie === undefined ? {} : { cookie } }), token)
  })
}

for (const [headers, isPage] of [
  [{}, false],
  [{ accept: 'text/html' }, false],
  [{ 'sec-fetch-dest': 'document', cookie: 'capfleet-session=old' }, false],
  [{ 'sec-fetch-dest': 'empty' }, true],
  [{ 'x-capfleet-form': '-' }, true],
  [{ cookie: 'capfleet-session=old' }, true],
] as const) {
  test(`${JSON.stringify(headers)}: the page ${isPage ? 'asks' : 'does not ask'}`, () => {
    assert.equal(isAskedByPage({ headers }), isPage)
  })
}

test('a path can end neither the cookie nor the header', () => {
  for (const path of ['/', '/a/', '/a/b.c~d/%20/']) assert.match(path, COOKIE_PATH)
  for (const path of ['', 'a/', '/a;b', '/a b', '/a\r\nb', '/ä/', `/${'x'.repeat(256)}`])
    assert.doesNotMatch(path, COOKIE_PATH)
})
