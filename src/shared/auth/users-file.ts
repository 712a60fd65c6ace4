/**
 * The users of one program: a YAML file of names, roles and password hashes, read at start and again when it changes.
 *
 *   users:
 *     - name: analyst
 *       role: user
 *       password: $argon2id$v=19$...
 *       since: 2026-11-27T09:00:00Z
 *       devices: lon*
 *
 * A user may also have bounds (bounds.ts) if the program supports them.
 */
import { hash, randomBytes } from 'node:crypto'
import { parse } from 'basic-auth'
import { LRUCache } from 'lru-cache'
import { z } from 'zod'
import { type Bounds, type Caller, type PasswordCredential, UNBOUNDED } from '../base/caller.ts'
import { loadConfig } from '../base/config-file.ts'
import { CapfleetError } from '../base/error.ts'
import { ROLES, type Role, SCOPES_OF_ROLE } from '../base/scopes.ts'
import { boundsOf, boundsSchema, sameBounds } from './bounds.ts'
import type { LoginGate } from './login-gate.ts'
import { hashPassword, isPasswordHash, verifyPassword } from './password-hash.ts'

export interface User {
  readonly name: string
  readonly role: Role
}

/** No colon: HTTP Basic ends the name there. */
export const USER_NAME = /^[^\s:\p{Cc}]{1,64}$/u
export const USER_NAME_RULE = 'must be 1 to 64 characters without spaces and colons'

const usersSchema = z.strictObject({
  users: z
    .array(
      boundsSchema.extend({
        name: z.string().regex(USER_NAME, USER_NAME_RULE),
        role: z.enum(ROLES),
        /** Anything created under the name before this belongs to an earlier user, not to them. */
        since: z.iso.datetime({ offset: true }).optional(),
        password: z
          .string()
          .refine(isPasswordHash, 'must be an argon2id hash; `capfleet user add` makes one'),
      }),
    )
    .min(1, 'must name a user; `capfleet user add` makes one')
    .superRefine((users, context) => {
      const names = users.map(({ name }) => name)
      const twice = names.findIndex((name, index) => names.indexOf(name) < index)
      if (twice >= 0) {
        const message = `names ${names[twice]} again; each user must have exactly one entry`
        context.addIssue({ code: 'custom', path: [twice, 'name'], message })
      }
    }),
})

type StoredUser = z.infer<typeof usersSchema>['users'][number]
/** Includes their bounds as in the file. */
export type ListedUser = Omit<StoredUser, 'password'>

/** Scripts send credentials with every request; verifying the password each time would cost 20 ms of CPU. */
const VERIFIED_MAX = 1_000
/** After this long a password is verified again, even if it is sent all the time. */
const VERIFIED_MS = 60_000
/** 12 of its 32 bytes suffice: nobody can construct another hash with the same mark. */
const MARK_LENGTH = 16

/** A user of the file, as if they had presented their password. */
export interface KnownUser extends Caller {
  readonly credential: PasswordCredential
  /** Aborts when the password changes, which ends sessions started with the old one. */
  readonly replaced: AbortSignal
}

/** A user's entry, valid as long as the file contains it unchanged. */
interface Entry {
  readonly stored: StoredUser
  readonly caller: KnownUser
  readonly revoke: AbortController
  readonly replace: AbortController
}

export interface UsersOptions {
  /** Whether users may have bounds. */
  readonly bounds: boolean
}

/** The hash of a random password, with which those of unknown users are compared; one for the whole process. */
let decoyHash: Promise<string> | undefined

export class UsersFile {
  readonly #path: string
  readonly #options: UsersOptions
  readonly #gate: LoginGate
  readonly #decoyHash: string
  #entries: ReadonlyMap<string, Entry>
  /**
   * Hashed together with all credentials, so that the duration of a look-up reveals nothing about them, and no
   * password can be guessed from the cache. An HMAC would reveal no less, and take as long as everything else that is
   * done for a small call.
   */
  readonly #cacheSecret = randomBytes(32).toString('hex')
  /** Entries whose credentials were verified; invalid once the file no longer contains the entry. */
  readonly #verified = new LRUCache<string, Entry>({ max: VERIFIED_MAX, ttl: VERIFIED_MS })
  /** When a program has just started, clients arrive together; one verification serves all of the same user. */
  readonly #running = new Map<string, Promise<Caller | undefined>>()

  private constructor(
    path: string,
    options: UsersOptions,
    entries: ReadonlyMap<string, Entry>,
    gate: LoginGate,
    decoyHash: string,
  ) {
    this.#path = path
    this.#options = options
    this.#entries = entries
    this.#gate = gate
    this.#decoyHash = decoyHash
  }

  /** Fails with bad-config if the file is missing, malformed or contains no user. */
  static async load(path: string, gate: LoginGate, options: UsersOptions): Promise<UsersFile> {
    const entries = new Map((await readUsers(path, options)).map((stored) => [stored.name, newEntry(stored)]))
    decoyHash ??= hashPassword(randomBytes(16).toString('hex'))
    return new UsersFile(path, options, entries, gate, await decoyHash)
  }

  /**
   * Reads the file again. For users who were removed or got fewer rights, `revoked` aborts; those with a new password
   * must log in again, and `replaced` aborts. Fails with bad-config without changing anything.
   */
  async reload(): Promise<void> {
    const stored = await readUsers(this.#path, this.#options)
    const before = this.#entries
    this.#entries = new Map(stored.map((user) => [user.name, nextEntry(before.get(user.name), user)]))
    for (const [name, { stored: was, revoke, replace }] of before) {
      const now = this.#entries.get(name)?.stored
      if (now?.password !== was.password)
        replace.abort(unauthenticated(`the password of ${name} was changed`))
      if (now === undefined || !isSameSince(now, was))
        revoke.abort(unauthenticated(`the user ${name} has been removed`))
      else if (mayLess(now, was)) revoke.abort(rightsTaken(now))
    }
  }

  /**
   * The user who sent `authorization` (the header's value) from `address` (of addressOf), or undefined if it is not
   * HTTP Basic or the name or password is wrong; the last two take the same time. Fails with too-many-logins.
   */
  verify(authorization: string, address: string): Promise<Caller | undefined> {
    const cacheKey = hash('sha256', this.#cacheSecret + authorization, 'base64')
    const cached = this.#verified.get(cacheKey)
    if (cached !== undefined && this.#isCurrent(cached)) return Promise.resolve(cached.caller)
    const running = this.#running.get(cacheKey)
    if (running !== undefined) return running
    const started = this.#check(authorization, address, cacheKey).finally(() =>
      this.#running.delete(cacheKey),
    )
    this.#running.set(cacheKey, started)
    return started
  }

  /** The user of this name according to the current file, as if they had presented their password. */
  now(name: string): KnownUser | undefined {
    return this.#entries.get(name)?.caller
  }

  /** All users without their passwords, in the order of the file. */
  list(): readonly ListedUser[] {
    return [...this.#entries.values()].map(({ stored: { password: _password, ...user } }) => user)
  }

  #isCurrent(entry: Entry): boolean {
    return this.#entries.get(entry.stored.name) === entry
  }

  async #check(authorization: string, address: string, cacheKey: string): Promise<Caller | undefined> {
    const credentials = parse(authorization)
    if (credentials === undefined) return undefined
    const entry = this.#entries.get(credentials.name)
    const right = await this.#gate.verify({ address, name: credentials.name }, () =>
      verifyPassword(credentials.pass, entry?.stored.password ?? this.#decoyHash),
    )
    if (!right || entry === undefined || !this.#isCurrent(entry)) return undefined
    this.#verified.set(cacheKey, entry)
    return entry.caller
  }
}

async function readUsers(path: string, { bounds }: UsersOptions): Promise<readonly StoredUser[]> {
  const { users } = await loadConfig(path, usersSchema)
  const bounded = bounds ? undefined : users.find((user) => !sameBounds(boundsOfStored(user), UNBOUNDED))
  if (bounded === undefined) return users
  throw new CapfleetError(
    'bad-config',
    `${path}: user ${bounded.name} has bounds (devices, filter, spanMaxS, bytesPerDay, streamsMax), which only a gateway supports`,
  )
}

/** All users without their passwords, in the order of the file. Fails with bad-config. */
export async function listUsers(path: string): Promise<readonly ListedUser[]> {
  const stored = await readUsers(path, { bounds: true })
  return stored.map(({ password: _password, ...user }) => user)
}

/** The rights of the user of this name according to the current file. Fails with bad-config. */
export async function findUser(
  path: string,
  name: string,
): Promise<Pick<Caller, 'name' | 'sinceMs' | 'scopes' | 'bounds'> | undefined> {
  const stored = (await readUsers(path, { bounds: true })).find((user) => user.name === name)
  return stored && newEntry(stored).caller
}

function boundsOfStored({
  name,
  role: _role,
  password: _password,
  since: _since,
  ...written
}: StoredUser): Bounds {
  return boundsOf(name, written)
}

/** A `since` that is further in the future was written on a computer whose clock is ahead. */
const SINCE_AHEAD_MAX_MS = 5_000

/** When the name became theirs. If `since` was written by a clock that is ahead, that is now, when we read it. */
function seenSince(sinceMs: number, nowMs: number): number {
  return sinceMs > nowMs + SINCE_AHEAD_MAX_MS ? nowMs - (nowMs % 1_000) : sinceMs
}

function isSameSince(a: StoredUser, b: StoredUser): boolean {
  return Date.parse(a.since ?? '') === Date.parse(b.since ?? '') || a.since === b.since
}

function newEntry(
  stored: StoredUser,
  { revoke, replace }: Pick<Entry, 'revoke' | 'replace'> = newEnds(),
): Entry {
  const { name, role, since } = stored
  const sinceMs = since === undefined ? undefined : seenSince(Date.parse(since), Date.now())
  // The hash includes a salt, so equal passwords of two users have different marks.
  const mark = hash('sha256', stored.password, 'base64url').slice(0, MARK_LENGTH)
  const credential = { kind: 'password', mark } as const
  const bounds = boundsOfStored(stored)
  const caller = { name, sinceMs, scopes: SCOPES_OF_ROLE[role], bounds, credential }
  const ends = { revoked: revoke.signal, replaced: replace.signal }
  return { stored, caller: { ...caller, ...ends }, revoke, replace }
}

function newEnds(): Pick<Entry, 'revoke' | 'replace'> {
  return { revoke: new AbortController(), replace: new AbortController() }
}

/** Running streams continue under the user's new role or password, unless that allows less. */
function nextEntry(before: Entry | undefined, stored: StoredUser): Entry {
  if (before === undefined || !isSameSince(before.stored, stored) || mayLess(stored, before.stored))
    return newEntry(stored)
  const { role, password } = before.stored
  const isSamePassword = password === stored.password
  if (role === stored.role && isSamePassword) return before
  return newEntry(stored, isSamePassword ? before : { ...newEnds(), revoke: before.revoke })
}

/** Changed bounds may be narrower; for filters only a device could decide that. */
function mayLess(now: StoredUser, was: StoredUser): boolean {
  return (
    ROLES.indexOf(now.role) < ROLES.indexOf(was.role) || !sameBounds(boundsOfStored(now), boundsOfStored(was))
  )
}

function unauthenticated(message: string): CapfleetError {
  return new CapfleetError('unauthenticated', message)
}

function rightsTaken({ name, role }: User): CapfleetError {
  return new CapfleetError('insufficient-scope', `the user ${name} has fewer rights now; the role is ${role}`)
}
