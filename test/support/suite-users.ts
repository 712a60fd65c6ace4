/** Users files of programs that tests start often. */
import { argon2Sync, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { stringify } from 'yaml'
import type { WrittenBounds } from '../../src/shared/auth/bounds.ts'
import type { User } from '../../src/shared/auth/users-file.ts'

/**
 * The least that argon2 accepts. A hash like those of `capfleet user add` costs 20 ms and 19 MiB for each user of each
 * program, and again for each login; test/src/shared/auth has the tests of those.
 */
const CHEAPEST = { memory: 8, passes: 1, parallelism: 1 }
const TAG_BYTES = 32

const hashes = new Map<string, string>()

/** Writes a new users file; all users have the same password. */
export async function writeUsers(
  path: string,
  users: readonly (User & WrittenBounds)[],
  password: string,
): Promise<void> {
  const hash = hashes.get(password) ?? cheapHash(password)
  hashes.set(password, hash)
  const entries = users.map((user) => ({ ...user, password: hash }))
  await writeFile(path, stringify({ users: entries }, { lineWidth: 0 }), { mode: 0o600 })
}

/** In the PHC string format. */
function cheapHash(password: string): string {
  const nonce = randomBytes(16)
  const { memory, passes, parallelism } = CHEAPEST
  const tag = argon2Sync('argon2id', { message: password, nonce, ...CHEAPEST, tagLength: TAG_BYTES })
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(nonce)}$${base64(tag)}`
}
