// /openapi.json and /openapi as an appliance serves them; the gateway uses the same code.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { startTempAppliance, type TempAppliance } from '../../../support/processes/temp-appliance.ts'

describe('the description of the API', () => {
  let appliance: TempAppliance
  before(async () => {
    appliance = await startTempAppliance()
  })
  after(() => appliance[Symbol.asyncDispose]())

  const asViewer = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    appliance.get(path, { user: appliance.credentials('viewer'), headers })

  test('requires a user, with any role', async () => {
    for (const path of ['/openapi.json', '/openapi']) {
      assert.equal((await asViewer(path)).status, 200, path)
      assert.equal((await appliance.get(path, { user: undefined })).status, 401, path)
    }
  })

  test('is not sent again to those who have it', async () => {
    for (const path of ['/openapi.json', '/openapi']) {
      const { headers, body } = await asViewer(path)
      assert.ok(body.length > 50_000)
      const etag = String(headers.etag)
      const again = await asViewer(path, { 'if-none-match': etag })
      assert.deepEqual([again.status, again.body.length, again.headers.etag], [304, 0, etag], path)
      assert.equal((await asViewer(path, { 'if-none-match': '"another"' })).status, 200, path)
    }
  })

  test('is OpenAPI 3.1 for programs', async () => {
    const { headers, json } = await asViewer('/openapi.json')
    assert.match(String(headers['content-type']), /^application\/json/)
    const { openapi, info } = json() as { openapi: string; info: { title: string } }
    assert.deepEqual([openapi, info.title], ['3.1.0', 'capfleet appliance'])
  })

  test('is a page for people that runs no script and sends no requests', async () => {
    const { headers, body } = await asViewer('/openapi')
    const page = body.toString()
    const policy = String(headers['content-security-policy'])
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[^' ]+';/)
    assert.doesNotMatch(policy, /unsafe|\*|https?:/)
    assert.doesNotMatch(page, /<(script|link|img|iframe|object)\b|\bsrc=|\bon\w+=|\bstyle=|@import|url\(/)
    assert.deepEqual(
      [...page.matchAll(/href="([^"]*)"/g)].map((match) => match[1]),
      ['/openapi.json'],
    )
    // A browser uses the style only if the policy names its hash.
    const style = /<style>(.*)<\/style>/s.exec(page)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    assert.ok(policy.includes(`'sha256-${hash}'`))
  })

  test('describes every path, parameter and error on the page', async () => {
    const page = (await asViewer('/openapi')).body.toString()
    for (const text of [
      'GET /stream/list',
      'FilterFrame',
      'an integer from 1 to 12288 (bytes)',
      'mixed-link-type',
    ])
      assert.ok(page.includes(text), text)
    assert.ok(page.includes('&quot;and&quot;'), 'texts are escaped')
  })
})
