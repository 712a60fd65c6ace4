// Forged tokens, and valid ones that were tampered with: none is accepted, and none costs much.
import assert from 'node:assert/strict'
import { createSecretKey, generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { SCOPES_OF_ROLE } from '../../../../src/shared/base/scopes.ts'
import { attacksOn, part, SIGNERS, type TokenModel, tokenOf } from '../../../support/access/forged-tokens.ts'
import { openTempTokens, type TempTokens } from '../../../support/access/temp-tokens.ts'
import { callerNamed } from '../../../support/access/test-caller.ts'
import { ownProcessorMs } from '../../../support/processes/processor-time.ts'
import { type SeededRandom, seededRandom } from '../../../support/seeded-random.ts'

const MUTATIONS = Number(process.env.MUTATED_TOKENS ?? 5_000)
const SLOWEST_MS = 50

interface KeyKind {
  readonly name: string
  readonly file: string
  readonly alg: keyof typeof SIGNERS
  readonly bytes: Buffer | string
  readonly key: KeyObject
  readonly publicKey?: KeyObject
}

function keyPair(
  name: string,
  alg: KeyKind['alg'],
  pair: { privateKey: KeyObject; publicKey: KeyObject },
): KeyKind {
  const bytes = pair.privateKey.export({ type: 'pkcs8', format: 'pem' })
  return { name, alg, file: 'main.pem', bytes, key: pair.privateKey, publicKey: pair.publicKey }
}

const SECRET = randomBytes(48)
const KINDS: readonly KeyKind[] = [
  keyPair('EC P-256', 'ES256', generateKeyPairSync('ec', { namedCurve: 'prime256v1' })),
  keyPair('EC P-384', 'ES384', generateKeyPairSync('ec', { namedCurve: 'secp384r1' })),
  keyPair('RSA', 'RS256', generateKeyPairSync('rsa', { modulusLength: 2_048 })),
  { name: 'HMAC', alg: 'HS256', file: 'main.secret', bytes: SECRET, key: createSecretKey(SECRET) },
]
/** There is always another key besides the one that a token is signed with. */
const OTHER = generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
})

/** The claims that OwnTokens sets. */
function modelOf({ alg, key, publicKey }: KeyKind): TokenModel {
  const nowS = Math.floor(Date.now() / 1_000)
  return {
    header: { alg, kid: 'main', typ: 'at+jwt' },
    claims: {
      iss: 'capfleet',
      aud: 'capfleet',
      sub: 'ann',
      jti: randomUUID(),
      iat: nowS,
      exp: nowS + 3_600,
      scope: 'device:read',
      bounds: { devices: [], filters: [], quotas: [] },
      parents: [],
    },
    signs: SIGNERS[alg](key),
    publicKey,
  }
}

const goodToken = ({ header, claims, signs }: TokenModel) => tokenOf(part(header), part(claims), signs)

/** The verifier's result and the processor time that it took, in ms; for slow cases the smallest of three tries. */
async function tryOut({ verifier }: TempTokens, token: string): Promise<{ error: unknown; tookMs: number }> {
  let [error, tookMs]: [unknown, number] = [undefined, Number.POSITIVE_INFINITY]
  for (let round = 0; round < 3 && tookMs > SLOWEST_MS; round += 1) {
    const beganMs = ownProcessorMs()
    error = await verifier.verify(token).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    tookMs = Math.min(tookMs, ownProcessorMs() - beganMs)
  }
  return { error, tookMs }
}

function assertRefused({ error, tookMs }: { error: unknown; tookMs: number }, token: string): void {
  assert.ok(
    error instanceof CapfleetError && error.code === 'unauthenticated',
    `${error}: ${token.slice(0, 9_000)}`,
  )
  assert.ok(error.details.tokenFlaw !== undefined && error.message.length < 300)
  assert.ok(tookMs <= SLOWEST_MS, `${tookMs} ms: ${token.slice(0, 9_000)}`)
}

for (const kind of KINDS) {
  describe(`a key of the kind ${kind.name}`, () => {
    let tokens: TempTokens
    before(async () => {
      tokens = await openTempTokens(async (folder) => {
        await writeFile(join(folder, kind.file), kind.bytes)
        await writeFile(join(folder, 'other.pem'), OTHER)
      })
    })
    after(() => tokens[Symbol.asyncDispose]())

    test('a good token is taken', async () => {
      const caller = await tokens.verifier.verify(goodToken(modelOf(kind)))
      assert.deepEqual([caller.name, [...caller.scopes]], ['ann', ['device:read']])
    })

    test('keys in the header of a token, and addresses of keys, change nothing', async () => {
      const { header, claims, signs } = modelOf(kind)
      const other = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
      const jwk = other.publicKey.export({ format: 'jwk' })
      const url = 'http://127.0.0.1:1/jwks.json'
      const brought = part({ ...header, jwk, jku: url, x5u: url, x5c: ['MA=='] })
      const good = tokenOf(brought, part(claims), signs)
      assert.equal((await tokens.verifier.verify(good)).name, 'ann')
      const forged = tokenOf(
        part({ ...header, alg: 'ES256', jwk }),
        part(claims),
        SIGNERS.ES256(other.privateKey),
      )
      assertRefused(await tryOut(tokens, forged), forged)
    })

    const attacks = attacksOn(modelOf(kind))
    test('there are enough attacks', () => assert.ok(attacks.length >= 60, String(attacks.length)))
    for (const { name, token } of attacks) {
      test(`refused: ${name}`, async () => assertRefused(await tryOut(tokens, token), token))
    }

    test(`${MUTATIONS / KINDS.length} mutated tokens are refused`, async (t) => {
      const random = seededRandom()
      t.diagnostic(`SEED=${random.seed}`)
      const model = modelOf(kind)
      const good = goodToken(model)
      for (let count = 0; count < MUTATIONS / KINDS.length; ) {
        const token = mutated(good, random)
        if (token === good) continue
        count += 1
        assertRefused(await tryOut(tokens, token), token)
      }
      assert.equal((await tokens.verifier.verify(good)).name, 'ann', 'the token that was mutated is good')
    })
  })
}

/** One to three changes of characters, bits or parts. */
function mutated(token: string, random: SeededRandom): string {
  let text = token
  for (let changes = random.integer(1, 3); changes > 0; changes -= 1)
    text = random.pick(MUTATORS)(text, random)
  return text
}

const LETTERS = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n\0é']
type Mutator = (text: string, random: SeededRandom) => string
const MUTATORS: readonly Mutator[] = [
  (text, random) => splice(text, random.integer(0, text.length), 0, random.pick(LETTERS)),
  (text, random) => splice(text, random.integer(0, text.length - 1), 1, random.pick(LETTERS)),
  (text, random) => splice(text, random.integer(0, text.length - 1), random.integer(1, 8), ''),
  (text, random) => {
    const [at, length] = [random.integer(0, text.length - 1), random.integer(1, 40)]
    return splice(text, random.integer(0, text.length), 0, text.slice(at, at + length))
  },
  (text, random) => {
    const parts = text.split('.')
    const index = random.integer(0, parts.length - 1)
    const bytes = Buffer.from(parts[index] ?? '', 'base64url')
    if (bytes.length === 0) return `${text}x`
    const at = random.integer(0, bytes.length - 1)
    bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << random.integer(0, 7)), at)
    return parts.with(index, bytes.toString('base64url')).join('.')
  },
  (text, random) => {
    const parts = text.split('.')
    const index = random.integer(0, parts.length - 1)
    return parts.with(index, parts[random.integer(0, parts.length - 1)] ?? '').join('.')
  },
]

function splice(text: string, at: number, removed: number, added: string): string {
  return text.slice(0, at) + added + text.slice(at + removed)
}

describe('a token', () => {
  const kind = KINDS[0] as KeyKind
  let folder = ''
  let tokens: TempTokens
  before(async () => {
    tokens = await openTempTokens(async (path) => {
      folder = path
      await writeFile(join(path, kind.file), kind.bytes)
    })
  })
  after(() => tokens[Symbol.asyncDispose]())

  const issue = (name = 'ann', role: 'full' | 'admin' = 'full') =>
    tokens.handling.own.issue(callerNamed(name, { role }), {
      lifetimeS: undefined,
      scopes: undefined,
      bounds: {},
      note: undefined,
    })

  test('is worth what its user may do now, and nothing when the user is removed', async () => {
    const { token } = await issue('admin', 'admin')
    const before = await tokens.verifier.verify(token)
    assert.deepEqual(before.scopes, SCOPES_OF_ROLE.admin)
    assert.equal(await tokens.verifier.verify(token), before, 'from the cache')
    const text = await readFile(tokens.usersPath, 'utf8')
    await writeFile(tokens.usersPath, text.replace('role: admin', 'role: viewer\n    devices: lon*'))
    await tokens.users.reload()
    assert.ok(before.revoked.aborted)
    const lesser = await tokens.verifier.verify(token)
    assert.deepEqual([lesser.scopes, lesser.bounds.devices], [SCOPES_OF_ROLE.viewer, ['lon*']])
    assert.ok(!lesser.revoked.aborted)
    await writeFile(tokens.usersPath, text.replace(/ {2}- name: admin\n(?: {4}.*\n)+/, ''))
    await tokens.users.reload()
    assert.ok(lesser.revoked.aborted)
    await assert.rejects(tokens.verifier.verify(token), { code: 'unauthenticated' })
  })

  test('that expires is refused, but what runs by it is not cut; one that is revoked is', async () => {
    const model = modelOf(kind)
    const exp = Math.floor(Date.now() / 1_000) - 1
    const expiring = await tokens.verifier.verify(
      goodToken({ ...model, claims: { ...model.claims, iat: exp - 60, exp } }),
    )
    const { token, issued } = await issue()
    const caller = await tokens.verifier.verify(token)
    assert.ok(!caller.revoked.aborted)
    tokens.handling.revocations.add(issued)
    assert.ok(caller.revoked.aborted && !expiring.revoked.aborted)
    assert.equal(caller.revoked.reason.code, 'unauthenticated')
    await assert.rejects(tokens.verifier.verify(token), /revoked/)
  })

  test('outlives the addition of a key, is good with both, and ends with its own', async () => {
    const old = (await issue()).token
    const files = {
      key: join(folder, 'next.pem'),
      broken: join(folder, 'zz.pem'),
      short: join(folder, 'zz.secret'),
    }
    await writeFile(files.key, OTHER)
    await writeFile(files.broken, 'no key')
    await writeFile(files.short, 'short')
    await tokens.keys.reload()
    assert.deepEqual(tokens.logged.slice(-2), ['token-keys.refused zz.pem', 'token-keys.refused zz.secret'])
    const young = (await issue()).token
    assert.equal(headOf(young).kid, 'next', 'the last by name signs')
    for (const token of [old, young]) assert.equal((await tokens.verifier.verify(token)).name, 'ann')
    await rm(join(folder, kind.file))
    await tokens.keys.reload()
    await assert.rejects(tokens.verifier.verify(old), { code: 'unauthenticated' })
    assert.equal((await tokens.verifier.verify(young)).name, 'ann')
    await rm(files.key)
    await assert.rejects(tokens.keys.reload(), { code: 'bad-config' })
    assert.equal((await tokens.verifier.verify(young)).name, 'ann', 'no key at all is a mistake')
  })

  test('is counted by what became of it', async () => {
    await assert.rejects(tokens.verifier.verify('x'))
    const text = await tokens.metrics.text()
    assert.match(text, /capfleet_tokens_verified_total\{result="accepted"\} \d/)
    assert.match(text, /capfleet_tokens_verified_total\{result="malformed"\} 1/)
    assert.match(text, /capfleet_tokens_verified_total\{result="unknown-key"\} 1/)
  })
})

function headOf(token: string): { readonly kid: string } {
  return JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())
}
