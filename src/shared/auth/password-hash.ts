/** argon2id in the PHC string format: $argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash> */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'

/** OWASP's smallest recommended argon2id setting: 19 MiB, two passes; about 20 ms of one core. */
const MEMORY_KIB = 19_456
const PASSES = 2
const PARALLELISM = 1
const SALT_BYTES = 16
const TAG_BYTES = 32

const PHC =
  /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/
/** A users file must not be able to make one login take gigabytes. */
const MEMORY_KIB_MAX = 1 << 20

const argon2Async = promisify(argon2)

/** Uses a random salt, unless `salt` is given because the hash must be reproducible. */
export async function hashPassword(password: string, salt?: Buffer): Promise<string> {
  const nonce = salt ?? randomBytes(SALT_BYTES)
  const tag = await argon2Async('argon2id', {
    message: Buffer.from(password),
    nonce,
    memory: MEMORY_KIB,
    passes: PASSES,
    parallelism: PARALLELISM,
    tagLength: TAG_BYTES,
  })
  return `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=${PARALLELISM}$${base64(nonce)}$${base64(tag)}`
}

/** Whether `text` is a hash that verifyPassword can use. */
export function isPasswordHash(text: string): boolean {
  const match = PHC.exec(text)
  return match !== null && Number(match[1]) <= MEMORY_KIB_MAX
}

/** REQUIRES: isPasswordHash(hash). Takes the same time for a right and a wrong password. */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  const match = PHC.exec(hash)
  if (match === null) throw new Error('not a password hash')
  const [, memory, passes, parallelism, salt = '', tag = ''] = match
  const expected = Buffer.from(tag, 'base64')
  const actual = await argon2Async('argon2id', {
    message: Buffer.from(password),
    nonce: Buffer.from(salt, 'base64'),
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    tagLength: expected.length,
  })
  return timingSafeEqual(expected, actual)
}

/** PHC strings use base64 without padding. */
function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64').replaceAll('=', '')
}
