// The page, the documentation and their files, as browsers and others get them.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import type { GatewayParts } from '../../../../src/gateway/routes/gateway-parts.ts'
import {
  leadToDocs,
  showAsset,
  showDissector,
  showDocs,
  showPage,
} from '../../../../src/gateway/routes/page-handlers.ts'
import type { RouteContext } from '../../../../src/gateway/routes/request/route-context.ts'
import { RouteTable } from '../../../../src/gateway/routes/route-table.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { SESSION_API } from '../../../../src/shared/contract/session-api.ts'
import { createHttpApp } from '../../../../src/shared/http/http-app.ts'
import { listen } from '../../../../src/shared/http/http-server.ts'
import { PackedFiles } from '../../../../src/shared/http/packed-files.ts'
import { PageFiles } from '../../../../src/shared/http/page-files.ts'
import { type HttpAnswer, httpGet } from '../../../support/http-get.ts'
import { searchedLog } from '../../../support/suite-secrets.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const HTML = `<!doctype html><title>capfleet</title>${'<p>'.repeat(200)}`
const INLINE = 'window.x = 1 < 2'
const BROWSER = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

/** Their rows alone, over the files of a folder; the documentation is in its folder "site". */
async function serve(folder: string, owner: AsyncDisposableStack): Promise<string> {
  const [log, metrics] = [searchedLog(), new Metrics()]
  const app = createHttpApp({ log, metrics, takesTokens: true })
  const [page, docs] = [await PageFiles.read(folder), await PageFiles.read(join(folder, 'site'))]
  const dissector = await PackedFiles.read(join(folder, 'packed'))
  const parts = { page, docs, dissector } as GatewayParts
  const rows = [
    { ...SESSION_API.page, handler: showPage },
    { ...SESSION_API.asset, handler: showAsset },
    { ...SESSION_API.dissector, handler: showDissector },
    { ...SESSION_API.docs, handler: leadToDocs },
    { ...SESSION_API.docsFile, handler: showDocs },
  ]
  const table = new RouteTable(rows, (route, ctx) => route.handler(ctx, parts))
  app.use((ctx, next) => table.dispatch(ctx as RouteContext, next))
  const settings = { host: '127.0.0.1', port: 0, allowInsecure: false }
  const server = await listen(app.callback(), settings, metrics)
  owner.defer(() => server.close(0))
  return server.url
}

describe('the page', () => {
  const owned = new AsyncDisposableStack()
  let url = ''
  before(async () => {
    const folder = owned.use(await tempFolder()).path
    await mkdir(join(folder, 'assets'))
    await writeFile(join(folder, 'index.html'), HTML)
    await writeFile(join(folder, 'assets', 'app-1a2b.js'), 'let x = 1\n'.repeat(100))
    await writeFile(join(folder, 'assets', 'again.js'), 'let y = 1')
    await writeFile(join(folder, 'secret.txt'), 'not for the network')
    await mkdir(join(folder, 'site', 'guides'), { recursive: true })
    await mkdir(join(folder, 'site', 'assets', 'chunks'), { recursive: true })
    await writeFile(join(folder, 'site', 'index.html'), `<title>Docs</title><script>${INLINE}</script>`)
    await writeFile(join(folder, 'site', 'guides', 'tls.html'), '<title>TLS</title>')
    await writeFile(join(folder, 'site', 'assets', 'chunks', 'index-1a2b.js'), 'let z = 1\n'.repeat(100))
    await writeFile(join(folder, 'site', '.built'), 'not for the network')
    url = await serve(folder, owned)
  })
  after(() => owned.disposeAsync())

  const ask = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
    httpGet(url + path, { headers, method })

  test('is served to browsers, with a policy that allows nothing more', async () => {
    const { status, headers, body } = await ask('/', BROWSER)
    assert.deepEqual([status, body.toString()], [200, HTML])
    assert.equal(headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(headers['cache-control'], 'no-cache')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    const policy = String(headers['content-security-policy'])
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';.*frame-ancestors 'none'/)
    assert.doesNotMatch(policy, /unsafe|\*|http/)
    assert.match(String(headers.vary), /Accept\b.*Accept-Encoding/)
  })

  test('has a dissector from the disk as the build has compressed it, for ever', async () => {
    await using own = new AsyncDisposableStack()
    const folder = own.use(await tempFolder()).path
    await mkdir(join(folder, 'packed', 'b1a2'), { recursive: true })
    const packed = gzipSync('<title>Frame</title>')
    await writeFile(join(folder, 'packed', '.built'), 'not for the network')
    await writeFile(join(folder, 'packed', 'b1a2', 'frame.html.gz'), packed)
    await writeFile(join(folder, 'packed', 'b1a2', 'module.wasm.gz'), packed)
    await writeFile(join(folder, 'packed', 'b1a2', 'notes'), 'not for the network')
    const base = await serve(folder, own)
    const { status, headers, body } = await httpGet(`${base}/dissector/b1a2/frame.html`)
    assert.deepEqual([status, body], [200, packed])
    assert.equal(headers['content-encoding'], 'gzip')
    assert.equal(headers['content-length'], String(packed.length))
    assert.equal(headers['content-type'], 'text/html; charset=utf-8')
    assert.match(String(headers['cache-control']), /immutable/)
    assert.match(
      String(headers['content-security-policy']),
      /^default-src 'none'; script-src 'self' 'wasm-unsafe-eval' 'unsafe-eval'; connect-src 'none'; sandbox allow-scripts;/,
    )
    const module = await httpGet(`${base}/dissector/b1a2/module.wasm`, { method: 'HEAD' })
    assert.deepEqual([module.headers['content-type'], module.body.length], ['application/wasm', 0])
    const known = { headers: { 'if-none-match': String(headers.etag) } }
    assert.equal((await httpGet(`${base}/dissector/b1a2/frame.html`, known)).status, 304)
    for (const path of ['b1a2/notes', 'b1a2/.built', 'b1a3/frame.html', 'b1a2/..%2f.built', '.built/notes'])
      assert.equal((await httpGet(`${base}/dissector/${path}`)).status, 404, path)
  })

  test('without a dissector has no path for it, and a policy without frames', async () => {
    assert.equal((await ask('/dissector/b1a2/frame.html')).status, 404)
    assert.doesNotMatch(String((await ask('/', BROWSER)).headers['content-security-policy']), /frame-src/)
  })

  test('is not there for those who do not ask for HTML, as nothing was there before', async () => {
    for (const headers of [{}, { accept: '*/*' }, { accept: 'application/json' }]) {
      const answer = await ask('/', headers)
      assert.deepEqual([answer.status, answer.json().code], [404, 'not-found'])
      assert.equal(answer.headers['cache-control'], 'no-store')
    }
  })

  test('a file without a hash in its name is looked for each time', async () => {
    assert.equal((await ask('/assets/again.js')).headers['cache-control'], 'no-cache')
  })

  test('a file is kept by browsers for good', async () => {
    const { status, headers } = await ask('/assets/app-1a2b.js')
    assert.equal(status, 200)
    assert.equal(headers['content-type'], 'text/javascript; charset=utf-8')
    assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.match(String(headers['content-security-policy']), /^default-src 'none'/)
  })

  test('comes zipped for those who take that, and whole bytes for others', async () => {
    const plain = await ask('/assets/app-1a2b.js')
    for (const coding of ['gzip', 'gzip, deflate, br, zstd', '*']) {
      const zipped = await ask('/assets/app-1a2b.js', { 'accept-encoding': coding })
      assert.equal(zipped.headers['content-encoding'], 'gzip', coding)
      assert.deepEqual(gunzipSync(zipped.body), plain.body)
      assert.notEqual(zipped.headers.etag, plain.headers.etag)
    }
    for (const coding of ['br', 'identity', 'gzip;q=0', '']) {
      const { headers, body } = await ask('/assets/app-1a2b.js', { 'accept-encoding': coding })
      assert.deepEqual([headers['content-encoding'], body], [undefined, plain.body], coding)
    }
  })

  test('is not sent again to a client that has it', async () => {
    const answered: HttpAnswer[] = []
    for (const [path, headers] of [
      ['/', BROWSER],
      ['/assets/app-1a2b.js', { 'accept-encoding': 'gzip' }],
    ] as const) {
      const { headers: head } = await ask(path, headers)
      answered.push(await ask(path, { ...headers, 'if-none-match': String(head.etag) }))
      answered.push(await ask(path, { ...headers, 'if-none-match': '"another"' }))
    }
    assert.deepEqual(
      answered.map(({ status, body }) => [status, body.length > 0]),
      [
        [304, false],
        [200, true],
        [304, false],
        [200, true],
      ],
    )
  })

  test('HEAD has the head alone', async () => {
    const [head, whole] = [await ask('/', BROWSER, 'HEAD'), await ask('/', BROWSER)]
    assert.deepEqual([head.status, head.body.length], [200, 0])
    assert.equal(head.headers['content-length'], String(whole.body.length))
    assert.equal(head.headers.etag, whole.headers.etag)
  })

  for (const path of [
    '/assets/',
    '/assets/nothing.js',
    '/assets/..%2fsecret.txt',
    '/assets/%2e%2e%2fsecret.txt',
    '/assets/../secret.txt',
    '/assets/..%5csecret.txt',
    '/assets/app-1a2b.js%00',
    '/secret.txt',
    '/index.html',
    '/docs/nothing.html',
    '/docs/guides',
    '/docs/guides/',
    '/docs/.built',
    '/docs/..%2fsecret.txt',
    '/docs/%2e%2e%2fsecret.txt',
    '/docs/index.html%00',
  ]) {
    test(`there is nothing at ${path}`, async () => {
      const answer = await ask(path, BROWSER)
      assert.deepEqual([answer.status, answer.json().code], [404, 'not-found'])
    })
  }

  test('the documentation is a folder, to which its name without a slash leads', async () => {
    const { status, headers, body } = await ask('/docs')
    assert.deepEqual([status, headers.location, body.length], [302, 'docs/', 0])
    for (const [path, title] of [
      ['/docs/', 'Docs'],
      ['/docs/index.html', 'Docs'],
      ['/docs/guides/tls.html', 'TLS'],
    ] as const) {
      const answer = await ask(path)
      assert.deepEqual(
        [answer.status, answer.headers['content-type']],
        [200, 'text/html; charset=utf-8'],
        path,
      )
      assert.match(answer.body.toString(), new RegExp(`<title>${title}<`))
      assert.equal(answer.headers['cache-control'], 'no-cache')
    }
  })

  test('a page of the documentation may run its own scripts, and no others', async () => {
    const [index, other] = [await ask('/docs/'), await ask('/docs/guides/tls.html')]
    const policies = [index, other].map(({ headers }) => String(headers['content-security-policy']))
    const allowed = policies.map((policy) => /script-src ([^;]*)/.exec(policy)?.[1])
    assert.deepEqual(allowed, [`'self' 'sha256-${hash('sha256', INLINE, 'base64')}'`, "'self'"])
    for (const policy of policies) assert.doesNotMatch(policy, /unsafe|\*|http/)
  })

  test('a file of the documentation with a hash in its name is kept by browsers for good', async () => {
    const { status, headers } = await ask('/docs/assets/chunks/index-1a2b.js', { 'accept-encoding': 'gzip' })
    assert.deepEqual([status, headers['content-encoding']], [200, 'gzip'])
    assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable')
  })

  test('says how it is built where it was not', async () => {
    await using nothing = await tempFolder()
    const bare = await serve(nothing.path, owned)
    for (const path of ['/', '/docs/']) {
      const answer = await httpGet(bare + path, { headers: BROWSER })
      assert.equal(answer.status, 404, path)
      assert.match(String(answer.json().detail), /node \.ci\/setup\.mjs/)
    }
  })
})
