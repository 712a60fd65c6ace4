/** Public keys of an identity provider (a JWK set, RFC 7517), each with the algorithms it is for. */
import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { Algorithm } from 'jsonwebtoken'
import { z } from 'zod'
import type { VerificationKey } from './token-keys.ts'

const KEYS_MAX = 100
const RSA_BITS_MIN = 2_048
const RSA_ALGORITHMS: readonly Algorithm[] = ['RS256', 'RS384', 'RS512', 'PS256']
const EC_ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
}

const keySetSchema = z.object({ keys: z.array(z.unknown()).max(KEYS_MAX) })
const keySchema = z.looseObject({
  // Shared keys are rejected: everyone able to verify with one could also sign with it.
  kty: z.enum(['RSA', 'EC']),
  kid: z.string().min(1).max(256),
  use: z.literal('sig').optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify'))
    .optional(),
  alg: z.string().optional(),
})

/** Keys by name. Keys for other purposes, or invalid ones, are skipped. Throws if the text is not a key set. */
export function readKeySet(
  text: string,
  allowed: readonly Algorithm[],
): ReadonlyMap<string, VerificationKey> {
  const keys = new Map<string, VerificationKey>()
  for (const value of keySetSchema.parse(JSON.parse(text)).keys) {
    const jwk = keySchema.safeParse(value).data
    const key = jwk && publicKey(jwk)
    if (jwk === undefined || key === undefined || keys.has(jwk.kid)) continue
    const algorithms = algorithmsOf(key).filter(
      (algorithm) => allowed.includes(algorithm) && (jwk.alg ?? algorithm) === algorithm,
    )
    if (algorithms.length > 0) keys.set(jwk.kid, { key, algorithms })
  }
  return keys
}

function publicKey(jwk: JsonWebKey): KeyObject | undefined {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' })
  } catch {
    return undefined
  }
}

function algorithmsOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): readonly Algorithm[] {
  const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails
  if (asymmetricKeyType === 'rsa') return modulusLength >= RSA_BITS_MIN ? RSA_ALGORITHMS : []
  const ofCurve = EC_ALGORITHMS[namedCurve]
  return ofCurve === undefined ? [] : [ofCurve]
}
