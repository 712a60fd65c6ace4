/**
 * The keys of our own tokens: the files of a folder. Each is one key, called (`kid`) as its file is without its ending:
 * NAME.pem is a private key, NAME.secret the bytes of a shared one. The last by name signs, all verify: a key is
 * replaced by adding one with a later name, and removing the old one when its tokens have expired.
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

/** A key says by which algorithms it is used, whatever a token says of itself. */
export interface VerificationKey {
  readonly key: KeyObject
  readonly algorithms: readonly Algorithm[]
}

export interface TokenKey extends VerificationKey {
  readonly kid: string
  /** Private, or shared. */
  readonly signs: KeyObject
  readonly algorithm: Algorithm
}

export interface TokenKeysOptions {
  readonly folder: string
  /** Whether a key is made where there is none. Replicas need the same ones. */
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

  /** Fails with bad-config when there is no key. */
  static async open(options: TokenKeysOptions): Promise<TokenKeys> {
    if (options.makesFirst) await makeFirst(options.folder)
    return new TokenKeys(options, await readKeys(options))
  }

  /** What new tokens are signed with. */
  get newest(): TokenKey {
    const last = [...this.#keys.values()].at(-1)
    if (last === undefined) throw new Error('keys were read')
    return last
  }

  find(kid: string): VerificationKey | undefined {
    return this.#keys.get(kid)
  }

  /** Reads the folder again. Fails with bad-config when no key is left; nothing has changed then. */
  async reload(): Promise<void> {
    this.#keys = await readKeys(this.#options)
  }
}

/** Keys by name, in its order. One that cannot be used is logged and left out. */
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

/** Only behind text is a line end an editor's, and no byte of the secret: one in 256 random secrets ends in one, too. */
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
