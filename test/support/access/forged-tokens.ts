/** Tokens as attackers forge them: from a valid one, or with what they know about its key. */
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

export type Json = Readonly<Record<string, unknown>>

/** The parts of a valid token. */
export interface TokenModel {
  readonly header: Json
  readonly claims: Json
  /** Signs like its issuer. */
  readonly signs: (text: string) => Buffer
  /** The public part of the key; undefined for a shared key. */
  readonly publicKey: KeyObject | undefined
}

export interface Attack {
  readonly name: string
  readonly token: string
}

export const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const raw = (json: string): string => Buffer.from(json).toString('base64url')

/** A token of these texts, signed with `signs`. */
export function tokenOf(header: string, claims: string, signs: TokenModel['signs']): string {
  return `${header}.${claims}.${signs(`${header}.${claims}`).toString('base64url')}`
}

/** How a key of each type signs, and which `alg` names it. */
export const SIGNERS = {
  RS256: (key: KeyObject) => (text: string) => sign('sha256', Buffer.from(text), key),
  ES256: (key: KeyObject) => (text: string) =>
    sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }),
  ES384: (key: KeyObject) => (text: string) =>
    sign('sha384', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }),
  HS256: (key: KeyObject | string | Buffer) => (text: string) =>
    createHmac('sha256', key).update(text).digest(),
} as const

/** All known attacks on JWTs, applied to this one. */
export function attacksOn({ header, claims, signs, publicKey }: TokenModel): readonly Attack[] {
  const nowS = Math.floor(Date.now() / 1_000)
  const own = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const ownRsa = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const [h, c] = [part(header), part(claims)]
  const good = tokenOf(h, c, signs)
  const signature = good.split('.')[2] ?? ''
  const signed = (changed: Json, changedClaims: Json = {}) =>
    tokenOf(part({ ...header, ...changed }), part({ ...claims, ...changedClaims }), signs)
  const without = (name: string) => {
    const { [name]: _, ...others } = claims
    return tokenOf(h, part(others), signs)
  }
  const unsigned = (alg: string) => `${part({ ...header, alg })}.${c}.`
  const byOwn = (changed: Json) =>
    tokenOf(part({ ...header, alg: 'ES256', ...changed }), c, SIGNERS.ES256(own.privateKey))
  const withSecret = (secret: string | Buffer) =>
    tokenOf(part({ ...header, alg: 'HS256' }), c, SIGNERS.HS256(secret))
  const jwk = own.publicKey.export({ format: 'jwk' })
  const pem = publicKey?.export({ format: 'pem', type: 'spki' }).toString() ?? 'no public key'
  const der = publicKey?.export({ format: 'der', type: 'spki' }) ?? Buffer.from('no public key')
  const twice = (name: string, value: unknown) =>
    raw(`${JSON.stringify(claims).slice(0, -1)},${JSON.stringify(name)}:${JSON.stringify(value)}}`)
  return Object.entries({
    'no signature, alg none': unsigned('none'),
    'no signature, alg None': unsigned('None'),
    'no signature, alg NONE': unsigned('NONE'),
    'no signature, alg as it was': `${h}.${c}.`,
    'alg none, with the old signature': `${part({ ...header, alg: 'none' })}.${c}.${signature}`,
    'alg is no text': `${part({ ...header, alg: ['none'] })}.${c}.${signature}`,
    'no alg': `${part({ kid: header.kid, typ: header.typ })}.${c}.${signature}`,
    'alg of another hash, signed anew': signed({ alg: header.alg === 'RS256' ? 'RS512' : 'HS512' }),
    'alg of another family, signed anew': signed({ alg: header.alg === 'PS256' ? 'RS256' : 'PS256' }),
    'the public key as a secret, PEM': withSecret(pem),
    'the public key as a secret, PEM without line end': withSecret(pem.trim()),
    'the public key as a secret, DER': withSecret(der),
    'an empty secret': withSecret(''),
    'a secret that everybody uses': withSecret('secret'),
    'the name of the key as a secret': withSecret(String(header.kid)),
    'a key of the attacker': byOwn({}),
    'an RSA key of the attacker': tokenOf(
      part({ ...header, alg: 'RS256' }),
      c,
      SIGNERS.RS256(ownRsa.privateKey),
    ),
    'a key in the header': byOwn({ jwk }),
    'a key in the header, without kid': byOwn({ jwk, kid: undefined }),
    'an address of keys in the header': byOwn({ jku: 'https://attacker.example/jwks.json' }),
    'an address of a certificate in the header': byOwn({ x5u: 'https://attacker.example/cert.pem' }),
    'a certificate in the header': byOwn({
      x5c: [own.publicKey.export({ format: 'der', type: 'spki' }).toString('base64')],
    }),
    'kid is a path': signed({ kid: '../../../../dev/null' }),
    'kid is an absolute path': signed({ kid: '/dev/null' }),
    'kid is a file of ours': signed({ kid: `${header.kid}.pem` }),
    'kid has a zero byte': signed({ kid: `${header.kid}\0` }),
    'kid is SQL': signed({ kid: "' UNION SELECT 'secret" }),
    'kid is a member of every object': signed({ kid: 'constructor' }),
    'kid is __proto__': signed({ kid: '__proto__' }),
    'kid is no text': signed({ kid: [header.kid] }),
    'kid is empty': signed({ kid: '' }),
    'no kid': signed({ kid: undefined }),
    'kid of another key': signed({ kid: 'other' }),
    'crit that nobody knows': signed({ crit: ['exp'], exp: nowS + 60 }),
    'crit with b64': signed({ crit: ['b64'], b64: false }),
    'typ of a security event': signed({ typ: 'secevent+jwt' }),
    'typ of a logout': signed({ typ: 'logout+jwt' }),
    'typ is no text': signed({ typ: 1 }),
    'another issuer': signed({}, { iss: 'https://attacker.example' }),
    'an issuer with a slash': signed({}, { iss: `${claims.iss}/` }),
    'several issuers': signed({}, { iss: [claims.iss] }),
    'no issuer': without('iss'),
    'another audience': signed({}, { aud: 'somebody-else' }),
    'no audience': without('aud'),
    'no expiry': without('exp'),
    'expired a minute ago': signed({}, { exp: nowS - 60 }),
    'expired by its tolerance': signed({}, { exp: nowS - 6 }),
    'expiry is a text': signed({}, { exp: String(nowS + 60) }),
    'expiry is null': signed({}, { exp: null }),
    'valid from tomorrow': signed({}, { nbf: nowS + 86_400 }),
    'valid from a text': signed({}, { nbf: 'yesterday' }),
    'another user, signature as it was': `${h}.${part({ ...claims, sub: 'admin' })}.${signature}`,
    'more scopes, signature as it was': `${h}.${part({ ...claims, scope: 'admin' })}.${signature}`,
    'no user': without('sub'),
    'the user twice': tokenOf(h, twice('sub', 'admin'), signs),
    'the expiry twice': tokenOf(h, twice('exp', nowS + 1e9), signs),
    'the user twice, once spelt in another way': tokenOf(
      h,
      raw(`${JSON.stringify(claims).slice(0, -1)},"s\\u0075b":"admin"}`),
      signs,
    ),
    'alg twice': tokenOf(raw(`${JSON.stringify(header).slice(0, -1)},"alg":"none"}`), c, signs),
    'claims are a list': tokenOf(h, part([claims]), signs),
    'claims are null': tokenOf(h, part(null), signs),
    'claims are no JSON': tokenOf(h, raw('{sub:admin}'), signs),
    'claims are no UTF-8': tokenOf(h, Buffer.from([0x22, 0xff, 0x22]).toString('base64url'), signs),
    'claims are a thousand brackets': tokenOf(h, raw('['.repeat(1_000)), signs),
    'claims are nested a thousand times': tokenOf(h, raw('['.repeat(1_000) + ']'.repeat(1_000)), signs),
    '9 KiB of claims': signed({}, { note: 'x'.repeat(9_216) }),
    '1 MiB of header': tokenOf(part({ ...header, note: 'x'.repeat(1_048_576) }), c, signs),
    'a million dots': '.'.repeat(1_000_000),
    padding: `${good}=`,
    'base64 with plus and slash': `${h}.${c}.${signature.replaceAll('-', '+').replaceAll('_', '/')}+/`,
    'other last bits': `${h}.${c}.${otherLastBits(signature)}`,
    'a line end': `${good}\n`,
    'a space inside': `${h}. ${c}.${signature}`,
    'four parts': `${good}.${signature}`,
    'two parts': `${h}.${c}`,
    'five parts, as encrypted tokens have': `${good}.${c}.${signature}`,
    'signature of zeros': `${h}.${c}.${Buffer.alloc(Buffer.from(signature, 'base64url').length).toString('base64url')}`,
    'half a signature': `${h}.${c}.${signature.slice(0, signature.length / 2)}`,
    compressed: signed({ zip: 'DEF' }),
    nothing: '',
  }).map(([name, token]) => ({ name, token }))
}

/** Decodes to the same bytes in a lenient reader: changes the unused bits of the last character. */
function otherLastBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const spare = text.length % 4 === 2 ? 4 : text.length % 4 === 3 ? 2 : 0
  if (spare === 0) return `${text}A`
  return text.slice(0, -1) + alphabet[alphabet.indexOf(text.at(-1) ?? '') ^ 1]
}
