/**
 * The users of one program: a YAML file of names, roles and password hashes, read at start and again
 * when it changes.
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
import { loadConfig } from '../base/config-file.ts'
import { CapfleetError } from '../base/error.ts'
import { ROLES, type Role } from '../base/role.ts'
import type { LoginGate } from './login-gate.ts'
import { hashPassword, isPasswordHash, verifyPassword } from './password-hash.ts'

export interface User {
  readonly name: string
  readonly role: Role
}

/** A user who has shown who they are. */
export interface KnownUser extends User {
  /** Aborts, with an error for them as its reason, when they are removed or may do less than before. */
  readonly revoked: AbortSignal
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

/** Scripts send credentials with every request; a look at the password each time would cost 20 ms of a core. */
const VERIFIED_MAX = 1_000

/** What the file says of a user, for as long as it says so. */
interface Entry {
  readonly stored: StoredUser
  readonly user: KnownUser
  readonly revoke: AbortController
}

export class UsersFile {
  readonly #path: string
  readonly #gate: LoginGate
  readonly #decoyHash: string
  #entries: ReadonlyMap<string, Entry>
  /** Hashed with all credentials, so that how long a look-up takes tells nothing about one. */
  readonly #cacheSecret = randomBytes(32).toString('hex')
  /** Whose credentials were right; an entry that the file has no more is no longer valid. */
  readonly #verified = new LRUCache<string, Entry>({ max: VERIFIED_MAX })
  /** Clients come together when a program has just started; one look will do for all of the same user. */
  readonly #running = new Map<string, Promise<KnownUser | undefined>>()

  private constructor(path: string, entries: ReadonlyMap<string, Entry>, gate: LoginGate, decoyHash: string) {
    this.#path = path
    this.#entries = entries
    this.#gate = gate
    this.#decoyHash = decoyHash
  }

  /** Fails with bad-config when the file is missing, malformed or names no user. */
  static async load(path: string, gate: LoginGate): Promise<UsersFile> {
    const entries = new Map((await readUsers(path)).map((stored) => [stored.name, newEntry(stored)]))
    return new UsersFile(path, entries, gate, await hashPassword(randomBytes(16).toString('hex')))
  }

  /**
   * Reads the file again. Who is removed, or has a lesser role, has `revoked` abort; who has another
   * password must log in with it from now on. Fails with bad-config; nothing has changed then.
   */
  async reload(): Promise<void> {
    const stored = await readUsers(this.#path)
    const before = this.#entries
    this.#entries = new Map(stored.map((user) => [user.name, nextEntry(before.get(user.name), user)]))
    for (const [name, { user, revoke }] of before) {
      const now = this.#entries.get(name)?.user
      if (now === undefined) revoke.abort(unauthenticated(`the user ${name} has been removed`))
      else if (isLess(now.role, user.role)) revoke.abort(roleTaken(now))
    }
  }

  /**
   * The user who sent `authorization` (the header's value) from `address` (of addressOf), or undefined
   * when it is not HTTP Basic or the name or the password is wrong; the last two take the same time.
   * Fails with too-many-logins.
   */
  verify(authorization: string, address: string): Promise<KnownUser | undefined> {
    const cacheKey = hash('sha256', this.#cacheSecret + authorization, 'base64')
    const cached = this.#verified.get(cacheKey)
    if (cached !== undefined && this.#isCurrent(cached)) return Promise.resolve(cached.user)
    const running = this.#running.get(cacheKey)
    if (running !== undefined) return running
    const started = this.#check(authorization, address, cacheKey).finally(() =>
      this.#running.delete(cacheKey),
    )
    this.#running.set(cacheKey, started)
    return started
  }

  #isCurrent(entry: Entry): boolean {
    return this.#entries.get(entry.stored.name) === entry
  }

  async #check(authorization: string, address: string, cacheKey: string): Promise<KnownUser | undefined> {
    const credentials = parse(authorization)
    if (credentials === undefined) return undefined
    const entry = this.#entries.get(credentials.name)
    const right = await this.#gate.verify({ address, name: credentials.name }, () =>
      verifyPassword(credentials.pass, entry?.stored.password ?? this.#decoyHash),
    )
    if (!right || entry === undefined || !this.#isCurrent(entry)) return undefined
    this.#verified.set(cacheKey, entry)
    return entry.user
  }
}

async function readUsers(path: string): Promise<readonly StoredUser[]> {
  return (await loadConfig(path, usersSchema)).users
}

/** The user of this name, as the file has them now. Fails with bad-config. */
export async function findUser(path: string, name: string): Promise<User | undefined> {
  const stored = (await readUsers(path)).find((user) => user.name === name)
  return stored && { name, role: stored.role }
}

function newEntry(stored: StoredUser, revoke = new AbortController()): Entry {
  const { name, role } = stored
  return { stored, user: { name, role, revoked: revoke.signal }, revoke }
}

/** Streams that run go on under the user's new role, or password, unless the role is less. */
function nextEntry(before: Entry | undefined, stored: StoredUser): Entry {
  if (before === undefined || isLess(stored.role, before.stored.role)) return newEntry(stored)
  const { role, password } = before.stored
  if (role === stored.role && password === stored.password) return before
  return newEntry(stored, before.revoke)
}

function isLess(role: Role, than: Role): boolean {
  return ROLES.indexOf(role) < ROLES.indexOf(than)
}

function unauthenticated(message: string): CapfleetError {
  return new CapfleetError('unauthenticated', message)
}

function roleTaken({ name, role }: User): CapfleetError {
  return new CapfleetError('insufficient-scope', `the user ${name} has the role ${role} only from now on`)
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
