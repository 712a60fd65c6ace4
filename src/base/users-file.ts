/**
 * The users of one program: a YAML file of names, roles and password hashes, read at start.
 *
 *   users:
 *     - name: analyst
 *       role: user
 *       password: $argon2id$v=19$...
 */
import { hash, randomBytes } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { parse } from 'basic-auth'
import { LRUCache } from 'lru-cache'
import { isMap, isSeq, parseDocument, type YAMLMap } from 'yaml'
import { z } from 'zod'
import { loadConfig } from './config-file.ts'
import { CapfleetError } from './error.ts'
import { hashPassword, isPasswordHash, verifyPassword } from './password-hash.ts'

/** From the least to the most powerful: look, download, start/stop/delete (api-decisions section 5). */
export const ROLES = ['viewer', 'user', 'full'] as const
export type Role = (typeof ROLES)[number]

export interface User {
  readonly name: string
  readonly role: Role
}

/** No colon: HTTP Basic ends the name there. */
const USER_NAME = /^[^\s:\p{Cc}]{1,64}$/u

const usersSchema = z.strictObject({
  users: z
    .array(
      z.strictObject({
        name: z.string().regex(USER_NAME, 'must be 1 to 64 characters without spaces and colons'),
        role: z.enum(ROLES),
        password: z
          .string()
          .refine(isPasswordHash, 'must be an argon2id hash; `capfleet user add` makes one'),
      }),
    )
    .min(1, 'must name a user; `capfleet user add` makes one'),
})

type StoredUser = z.infer<typeof usersSchema>['users'][number]

/** Scripts send credentials with every request; hashing each time would cost 20 ms of a core. */
const CACHE_TTL_MS = 300_000
const CACHE_ENTRIES = 1_000
/** So old may the cache's idea of the time be; it would else set a timer in each millisecond. */
const CACHE_TTL_RESOLUTION_MS = 1_000

export class UsersFile {
  readonly #users: ReadonlyMap<string, StoredUser>
  /** Hashed with all credentials, so that how long a look-up takes tells nothing about one. */
  readonly #cacheSecret = randomBytes(32).toString('hex')
  readonly #verified = new LRUCache<string, User>({
    max: CACHE_ENTRIES,
    ttl: CACHE_TTL_MS,
    ttlResolution: CACHE_TTL_RESOLUTION_MS,
  })
  /** Clients come back together when the cache forgets them; one hash will do for all. */
  readonly #running = new Map<string, Promise<User | undefined>>()
  readonly #decoyHash: string

  private constructor(users: readonly StoredUser[], decoyHash: string) {
    this.#users = new Map(users.map((user) => [user.name, user]))
    this.#decoyHash = decoyHash
  }

  /** Fails with bad-config when the file is missing, malformed or names no user. */
  static async load(path: string): Promise<UsersFile> {
    const { users } = await loadConfig(path, usersSchema)
    return new UsersFile(users, await hashPassword(randomBytes(16).toString('hex')))
  }

  /**
   * The user who sent `authorization` (the header's value), or undefined when it is not HTTP Basic or
   * the name or the password is wrong; the last two take the same time.
   */
  verify(authorization: string): Promise<User | undefined> {
    const cacheKey = hash('sha256', this.#cacheSecret + authorization, 'base64')
    const cached = this.#verified.get(cacheKey)
    if (cached !== undefined) return Promise.resolve(cached)
    const running = this.#running.get(cacheKey)
    if (running !== undefined) return running
    const started = this.#check(authorization, cacheKey).finally(() => this.#running.delete(cacheKey))
    this.#running.set(cacheKey, started)
    return started
  }

  async #check(authorization: string, cacheKey: string): Promise<User | undefined> {
    const credentials = parse(authorization)
    if (credentials === undefined) return undefined
    const stored = this.#users.get(credentials.name)
    const right = await verifyPassword(credentials.pass, stored?.password ?? this.#decoyHash)
    if (!right || stored === undefined) return undefined
    const user = { name: stored.name, role: stored.role }
    this.#verified.set(cacheKey, user)
    return user
  }
}

/** Adds or replaces a user; other lines and comments of the file stay. Makes the file when missing. */
export async function putUser(path: string, user: User, password: string): Promise<'added' | 'replaced'> {
  if (!USER_NAME.test(user.name)) {
    throw new CapfleetError('bad-parameter', 'a user name has 1 to 64 characters without spaces and colons', {
      param: 'name',
    })
  }
  if (password === '')
    throw new CapfleetError('bad-parameter', 'the password must not be empty', { param: 'password' })
  const document = parseDocument(await readOrEmpty(path))
  if (document.contents === null || !isMap(document.contents))
    document.contents = document.createNode({ users: [] }) as never
  if (!isSeq(document.get('users'))) document.set('users', document.createNode([]))
  const users = document.get('users') as { items: YAMLMap[]; add(item: unknown): void }
  const entry = document.createNode({ ...user, password: await hashPassword(password) })
  const index = users.items.findIndex((item) => isMap(item) && item.get('name') === user.name)
  if (index >= 0) users.items[index] = entry as never
  else users.add(entry)
  const hidden = `${path}.${process.pid}.new`
  await writeFile(hidden, document.toString({ lineWidth: 0 }), { mode: 0o600 })
  await rename(hidden, path)
  return index >= 0 ? 'replaced' : 'added'
}

async function readOrEmpty(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
