// Tokens of identity providers: of a real one over its lifetime, and of attackers who have all of its keys except the
// private ones.
import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, mock, test } from 'node:test'
import { gatewayConfigSchema } from '../../../../src/gateway/gateway-config.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { SCOPES_OF_ROLE } from '../../../../src/shared/base/scopes.ts'
import { attacksOn, part, SIGNERS, type TokenModel, tokenOf } from '../../../support/access/forged-tokens.ts'
import { openTempTokens, type TempTokens } from '../../../support/access/temp-tokens.ts'
import { OidcServer } from '../../../support/servers/oidc-server.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const ROLES = [
  { group: 'readers', role: 'viewer', devices: 'lon*' },
  { group: 'operators', role: 'full', devices: 'nyc*', streamsMax: 2 },
  { group: '10', role: 'user', devices: 'par*' },
  { group: '9', role: 'full' },
]
const oneKey = (folder: string) => writeFile(join(folder, 'own.secret'), Buffer.alloc(32, 7))

describe('a real identity provider', () => {
  const owned = new AsyncDisposableStack()
  let oidc: OidcServer
  let tokens: TempTokens
  before(async () => {
    oidc = owned.use(await OidcServer.start('ES256', 'one'))
    const jwks = { url: oidc.keysUrl }
    const provider = { name: 'corp', issuer: oidc.issuer, audience: oidc.audience, jwks, roles: ROLES }
    tokens = owned.use(await openTempTokens(oneKey, { providers: [provider] }))
  })
  after(() => owned.disposeAsync())

  test('is trusted for its users: the first of their groups here decides role and bounds together', async () => {
    oidc.groups = ['operators', 'guests', 'readers']
    const caller = await tokens.verifier.verify(await oidc.token())
    assert.equal(caller.name, 'corp:collector')
    assert.deepEqual(caller.scopes, SCOPES_OF_ROLE.viewer)
    assert.deepEqual([caller.bounds.devices, caller.bounds.quotas], [['lon*'], []])
    oidc.groups = ['9', '10']
    const numbered = await tokens.verifier.verify(await oidc.token())
    assert.deepEqual([numbered.scopes, numbered.bounds.devices], [SCOPES_OF_ROLE.user, ['par*']])
    oidc.groups = ['operators']
    const operator = await tokens.verifier.verify(await oidc.token())
    assert.deepEqual(operator.bounds.devices, ['nyc*'])
    assert.equal(operator.bounds.quotas[0]?.holder, 'corp:collector')
  })

  test('does not admit users whose groups have no role', async () => {
    for (const groups of [[], ['guests'], ['Readers']]) {
      oidc.groups = groups
      await assert.rejects(tokens.verifier.verify(await oidc.token()), {
        code: 'insufficient-scope',
        message: /corp:collector is not in a group/,
      })
    }
  })

  test('may have its groups inside of another claim, or in one whose name has dots', async (t) => {
    t.after(() => {
      oidc.claims = {}
    })
    const readers = ['readers']
    oidc.groups = []
    oidc.claims = {
      realm_access: { roles: readers },
      'https://corp.example/groups': readers,
      'a.b': readers,
      a: { b: ['operators'], toString: readers },
    }
    const rights = async (groupsClaim: string) => {
      const provider = {
        ...{ name: 'corp', issuer: oidc.issuer, audience: oidc.audience, jwks: { url: oidc.keysUrl } },
        ...{ roles: ROLES, groupsClaim },
      }
      await using other = await openTempTokens(oneKey, { providers: [provider] })
      return (await other.verifier.verify(await oidc.token())).scopes
    }
    for (const claim of ['realm_access.roles', 'https://corp.example/groups', 'a.b'])
      assert.deepEqual(await rights(claim), SCOPES_OF_ROLE.viewer, claim)
    for (const claim of ['realm_access', 'realm_access.nothing', 'constructor.name', 'realm_access.roles.0'])
      await assert.rejects(rights(claim), { code: /insufficient-scope|unauthenticated/ }, claim)
  })

  test('may hand on to a token of ours what its own token gives, until that expires', async () => {
    oidc.groups = ['readers']
    const caller = await tokens.verifier.verify(await oidc.token())
    const wanted = { lifetimeS: undefined, scopes: undefined, bounds: {}, note: undefined }
    const { token, issued } = await tokens.handling.own.issue(caller, wanted)
    assert.ok(caller.credential.kind === 'token' && issued.expiresMs <= caller.credential.expiresMs)
    const child = await tokens.verifier.verify(token)
    assert.deepEqual([child.name, child.bounds.devices], ['corp:collector', ['lon*']])
    assert.deepEqual(child.scopes, SCOPES_OF_ROLE.viewer)
  })

  test('changes its key: the new one is looked up, the old one is no more', async () => {
    oidc.groups = ['readers']
    const old = await oidc.token()
    assert.equal((await tokens.verifier.verify(old)).name, 'corp:collector')
    oidc.rotate('RS256', 'two')
    const young = await oidc.token()
    const reads = oidc.keyReads
    const callers = await Promise.all(Array.from({ length: 20 }, () => tokens.verifier.verify(young)))
    assert.equal(callers[0]?.name, 'corp:collector')
    assert.equal(oidc.keyReads - reads, 1, 'one question for all who came together')
    await assert.rejects(tokens.verifier.verify(old), { code: 'unauthenticated' })
  })

  test('is asked once for keys that do not exist, however many tokens name them', async (t) => {
    const now = performance.now()
    const clock = mock.method(performance, 'now', () => now + 61_000)
    t.after(() => clock.mock.restore())
    const [head = '', ...rest] = (await oidc.token()).split('.')
    const header = JSON.parse(Buffer.from(head, 'base64url').toString()) as object
    const reads = oidc.keyReads
    const flood = Array.from({ length: 2_000 }, (_, index) =>
      tokens.verifier.verify([part({ ...header, kid: `made-up-${index}` }), ...rest].join('.')),
    )
    const refused = (await Promise.allSettled(flood)).filter(({ status }) => status === 'rejected')
    assert.equal(refused.length, 2_000)
    assert.equal(oidc.keyReads - reads, 1)
    assert.match(await tokens.metrics.text(), /provider_keys_reads_total\{provider="corp",result="read"\} 3/)
  })

  test('is unreachable: the known keys stay valid', async (t) => {
    const young = await oidc.token()
    oidc.isDown = true
    const now = performance.now()
    const clock = mock.method(performance, 'now', () => now + 200_000)
    t.after(() => clock.mock.restore())
    const [, ...rest] = young.split('.')
    const strange = [part({ alg: 'RS256', kid: 'strange' }), ...rest].join('.')
    const reads = oidc.keyReads
    await assert.rejects(tokens.verifier.verify(strange), { code: 'unauthenticated' })
    assert.equal(oidc.keyReads - reads, 1)
    assert.equal((await tokens.verifier.verify(young)).name, 'corp:collector')
  })
})

/** A provider whose keys the test has. */
async function startStatic(pairs: Readonly<Record<string, KeyObject>>, others: readonly object[] = []) {
  await using starting = new AsyncDisposableStack()
  const folder = starting.use(await tempFolder())
  const file = join(folder.path, 'jwks.json')
  const keys = Object.entries(pairs).map(([kid, key]) => ({ ...key.export({ format: 'jwk' }), kid }))
  await writeFile(file, JSON.stringify({ keys: [...others, ...keys] }))
  const provider = {
    name: 'corp',
    issuer: 'https://idp.example',
    audience: 'us',
    jwks: { file },
    roles: ROLES,
  }
  const tokens = starting.use(await openTempTokens(oneKey, { providers: [provider] }))
  const owned = starting.move()
  return { tokens, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

const PAIRS = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'prime256v1' }),
  RS256: generateKeyPairSync('rsa', { modulusLength: 2_048 }),
}

function modelOf(alg: keyof typeof PAIRS, kid = 'main'): TokenModel {
  const nowS = Math.floor(Date.now() / 1_000)
  const claims = { iss: 'https://idp.example', aud: ['us'], sub: 'ann', exp: nowS + 600, groups: ['readers'] }
  const { privateKey, publicKey } = PAIRS[alg]
  return { header: { alg, kid, typ: 'JWT' }, claims, signs: SIGNERS[alg](privateKey), publicKey }
}

const goodToken = ({ header, claims, signs }: TokenModel) => tokenOf(part(header), part(claims), signs)

for (const alg of ['ES256', 'RS256'] as const) {
  describe(`a provider's key for ${alg}`, () => {
    let world: Awaited<ReturnType<typeof startStatic>>
    before(async () => {
      world = await startStatic({ main: PAIRS[alg].publicKey, other: PAIRS.ES256.publicKey })
    })
    after(() => world[Symbol.asyncDispose]())

    test('a good token is taken', async () => {
      assert.equal((await world.tokens.verifier.verify(goodToken(modelOf(alg)))).name, 'corp:ann')
    })

    for (const { name, token } of attacksOn(modelOf(alg))) {
      // The other key is of the same kind here.
      if (alg === 'ES256' && name === 'kid of another key') continue
      test(`refused: ${name}`, async () => {
        const error = await world.tokens.verifier.verify(token).catch((thrown: unknown) => thrown)
        assert.ok(error instanceof CapfleetError && error.code === 'unauthenticated', String(error))
      })
    }
  })
}

describe('of a set of keys', () => {
  const ec = PAIRS.ES256.publicKey.export({ format: 'jwk' })
  for (const [what, keys] of [
    ['one for encryption', [{ ...ec, kid: 'main', use: 'enc' }]],
    ['one that may not verify', [{ ...ec, kid: 'main', key_ops: ['deriveBits'] }]],
    ['one of another algorithm', [{ ...ec, kid: 'main', alg: 'ES384' }]],
    ['one without a name', [{ ...ec }]],
    ['one that is broken', [{ ...ec, kid: 'main', x: 'AAAA' }]],
    ['a shared one', [{ kty: 'oct', kid: 'main', k: Buffer.alloc(32, 1).toString('base64url') }]],
  ] as const) {
    test(`${what} verifies nothing, and the others do`, async () => {
      await using world = await startStatic({ good: PAIRS.ES256.publicKey }, keys)
      await assert.rejects(world.tokens.verifier.verify(goodToken(modelOf('ES256'))), {
        code: 'unauthenticated',
      })
      const shared = tokenOf(
        part({ alg: 'HS256', kid: 'main', typ: 'JWT' }),
        part(modelOf('ES256').claims),
        SIGNERS.HS256(Buffer.alloc(32, 1)),
      )
      await assert.rejects(world.tokens.verifier.verify(shared), { code: 'unauthenticated' })
      const good = goodToken(modelOf('ES256', 'good'))
      assert.equal((await world.tokens.verifier.verify(good)).name, 'corp:ann')
    })
  }
})

describe('an address of keys', () => {
  for (const [what, answer] of [
    ['leads elsewhere', { status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: '' }],
    ['answers without end', { status: 200, headers: {}, body: ' '.repeat(300_000) }],
    ['answers with a page', { status: 200, headers: {}, body: '<html>' }],
  ] as const) {
    test(`that ${what} gives none, and the gateway starts`, async () => {
      const server = createServer((_req, res) =>
        res.writeHead(answer.status, answer.headers).end(answer.body),
      )
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const address = server.address() as { port: number }
      const jwks = { url: `http://127.0.0.1:${address.port}/` }
      const provider = { name: 'corp', issuer: 'https://idp.example', audience: 'us', jwks, roles: ROLES }
      await using tokens = await openTempTokens(oneKey, { providers: [provider] })
      server.close()
      assert.ok(tokens.logged.includes('provider-keys.failed'), tokens.logged.join())
      await assert.rejects(tokens.verifier.verify(goodToken(modelOf('ES256'))), { code: 'unauthenticated' })
    })
  }

  test('is https, or of this machine', () => {
    const parse = (url: string, issuer = 'x') =>
      gatewayConfigSchema.safeParse({
        devices: [{ name: 'a', url: 'http://127.0.0.1', user: 'u', password: { env: 'X' } }],
        auth: {
          users: 'u',
          providers: [{ name: 'corp', issuer, audience: 'us', jwks: { url }, roles: ROLES }],
        },
      }).success
    for (const url of [
      'https://idp.example/jwks',
      'http://127.0.0.1:1/',
      'http://[::1]:1/',
      'http://localhost/',
    ])
      assert.ok(parse(url), url)
    for (const url of [
      'http://idp.example/jwks',
      'http://127.0.0.1.example/',
      'file:///etc/passwd',
      'https://u:p@idp/',
    ])
      assert.ok(!parse(url), url)
    assert.ok(!parse('https://idp.example/jwks', 'capfleet'), 'our own issuer')
  })
})
