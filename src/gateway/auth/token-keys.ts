/**
 * The keys of capfleet's own tokens: one file per key in a folder. A key's id (`kid`) is its file name without the
 * extension: NAME.pem is a private key, NAME.secret the bytes of a shared one. The last by name signs, all of them
 * verify. To rotate keys, add one with a later name and remove the old one when its tokens have expired.
 */
import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
} from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, parse } from 'node:path'
import type { Algorithm } from 'jsonwebtoken'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'

/** The key determines the accepted algorithms, whatever a token claims. */
export interface VerificationKey {
  readonly key: KeyObject
  readonly algorithms: readonly Algorithm[]
}

export interface TokenKey extends VerificationKey {
  readonly kid: string
  /** Private or shared key. */
  readonly signs: KeyObject
  readonly algorithm: Algorithm
}

export interface TokenKeysOptions {
  readonly folder: string
  /** Whether to create a key if there is none. Replicas must all have the same keys. */
  readonly makesFirst: boolean
  readonly log: Log
}

const KEY_FILE = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\.(pem|secret)$/
const FIRST_KEY = 'first.pem'
const SECRET_BYTES_MIN = 32
const RSA_BITS_MIN = 2_048
const EC_ALGORITHMS: Readonly<Record<string, Algorithm>> = { prime256v1: 'ES256', secp384r1: 'ES384' }

export class TokenKeys {
  readonly #options: TokenKeysOptions
  #keys: ReadonlyMap<string, TokenKey>

  private constructor(options: TokenKeysOptions, keys: ReadonlyMap<string, TokenKey>) {
    this.#options = options
    this.#keys = keys
  }

  /** Fails with bad-config if there is no key. */
  static async open(options: TokenKeysOptions): Promise<TokenKeys> {
    if (options.makesFirst) await makeFirst(options.folder)
    return new TokenKeys(options, await readKeys(options))
  }

  /** The key that signs new tokens. */
  get newest(): TokenKey {
    const last = [...this.#keys.values()].at(-1)
    if (last === undefined) throw new Error('keys were read')
    return last
  }

  find(kid: string): VerificationKey | undefined {
    return this.#keys.get(kid)
  }

  /** Reads the folder again. Fails with bad-config, without changing anything, if no key is left. */
  async reload(): Promise<void> {
    this.#keys = await readKeys(this.#options)
  }
}

/** Keys in the order of their names. A key that cannot be used is logged and skipped. */
async function readKeys({ folder, log }: TokenKeysOptions): Promise<ReadonlyMap<string, TokenKey>> {
  const keys = new Map<string, TokenKey>()
  for (const file of await keyFiles(folder)) {
    try {
      const key = await readKey(folder, file)
      if (keys.has(key.kid)) throw new Error(`there is another key named ${key.kid}`)
      keys.set(key.kid, key)
    } catch (error) {
      log.error('token-keys.refused', { file, message: (error as Error).message })
    }
  }
  if (keys.size > 0) return keys
  throw new CapfleetError(
    'bad-config',
    `auth.tokens.keys: ${folder} has no usable key; put a private key (NAME.pem: EC P-256 or P-384, RSA) or ` +
      `${SECRET_BYTES_MIN} random bytes (NAME.secret) there`,
  )
}

async function keyFiles(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).filter((name) => KEY_FILE.test(name)).sort()
  } catch (cause) {
    throw new CapfleetError(
      'bad-config',
      `auth.tokens.keys: cannot read the folder ${folder}: ${(cause as Error).message}`,
      { cause },
    )
  }
}

async function readKey(folder: string, file: string): Promise<TokenKey> {
  const { name: kid, ext } = parse(file)
  const bytes = await readFile(join(folder, file))
  if (ext === '.secret') {
    const secret = withoutLineEnd(bytes)
    if (secret.length < SECRET_BYTES_MIN)
      throw new Error(`a secret must have at least ${SECRET_BYTES_MIN} bytes`)
    const key = createSecretKey(secret)
    return { kid, key, signs: key, algorithm: 'HS256', algorithms: ['HS256'] }
  }
  const signs = createPrivateKey(bytes)
  const algorithm = algorithmOf(signs)
  return { kid, key: createPublicKey(signs), signs, algorithm, algorithms: [algorithm] }
}

/**
 * Strips a trailing newline only from text, where an editor added it: one in 256 random secrets ends in that byte,
 * too.
 */
function withoutLineEnd(bytes: Buffer): Buffer {
  const text = /^([ -~]*)\r?\n$/.exec(bytes.toString('latin1'))?.[1]
  return text === undefined ? bytes : Buffer.from(text)
}

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): Algorithm {
  const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails
  const ofCurve = EC_ALGORITHMS[namedCurve]
  if (asymmetricKeyType === 'ec' && ofCurve !== undefined) return ofCurve
  if (asymmetricKeyType === 'rsa' && modulusLength >= RSA_BITS_MIN) return 'RS256'
  throw new Error(`it is neither EC P-256, EC P-384 nor RSA of at least ${RSA_BITS_MIN} bits`)
}

async function makeFirst(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  if ((await keyFiles(folder)).length > 0) return
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  await writeFile(join(folder, FIRST_KEY), pem, { mode: 0o600, flag: 'wx' })
}
