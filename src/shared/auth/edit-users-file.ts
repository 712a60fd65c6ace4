/** Edits a users file for the command line; other users, keys and comments stay unchanged. */
import type { Stats } from 'node:fs'
import { chmod, chown, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { type Document, isMap, isSeq, parseDocument, type YAMLMap, type YAMLSeq } from 'yaml'
import { CapfleetError } from '../base/error.ts'
import { hashPassword } from './password-hash.ts'
import { USER_NAME, USER_NAME_RULE, type User } from './users-file.ts'

/**
 * Adds a user, or changes a user's role and password; `since` only applies to a new user. Creates the file if missing.
 * `salt`: as in hashPassword.
 */
export async function putUser(
  path: string,
  { since, ...user }: User & { readonly since?: Date | undefined },
  password: string,
  salt?: Buffer,
): Promise<'added' | 'replaced'> {
  if (!USER_NAME.test(user.name))
    throw new CapfleetError('bad-parameter', `the name ${USER_NAME_RULE}`, { param: 'name' })
  const settings = { ...user, password: await hashOf(password, salt) }
  const document = parseDocument(await readOrEmpty(path))
  const entry = entryOf(document, user.name)
  const added = since === undefined ? settings : { ...settings, since: wholeSecond(since) }
  if (entry === undefined) makeUsers(document).add(document.createNode(added))
  else for (const [key, value] of Object.entries(settings)) entry.set(key, value)
  await replaceFile(path, document)
  return entry === undefined ? 'added' : 'replaced'
}

/** Fails with bad-parameter if the user does not exist. */
export async function changePassword(path: string, name: string, password: string): Promise<void> {
  const document = parseDocument(await readOrEmpty(path))
  const entry = entryOf(document, name)
  if (entry === undefined) throw noSuchUser(path, name)
  entry.set('password', await hashOf(password))
  await replaceFile(path, document)
}

/** Fails with bad-parameter if the user does not exist, or is the only one. */
export async function removeUser(path: string, name: string): Promise<void> {
  const document = parseDocument(await readOrEmpty(path))
  const entry = entryOf(document, name)
  const users = usersOf(document)
  if (entry === undefined || users === undefined) throw noSuchUser(path, name)
  // Programs reject a file without users, so a running one would keep the present contents.
  if (users.items.length === 1) {
    const message = `${name} is the only user of ${path}; add another one first`
    throw new CapfleetError('bad-parameter', message, { param: 'name' })
  }
  users.items = users.items.filter((item) => item !== entry)
  await replaceFile(path, document)
}

/** The resolution of times in tokens. */
function wholeSecond(time: Date): string {
  return time.toISOString().replace(/\.\d+/, '')
}

async function hashOf(password: string, salt?: Buffer): Promise<string> {
  if (password !== '') return await hashPassword(password, salt)
  throw new CapfleetError('bad-parameter', 'the password must not be empty', { param: 'password' })
}

function noSuchUser(path: string, name: string): CapfleetError {
  return new CapfleetError('bad-parameter', `${path} has no user ${name}`, { param: 'name' })
}

function usersOf(document: Document): YAMLSeq | undefined {
  const users = isMap(document.contents) ? document.get('users') : undefined
  return isSeq(users) ? users : undefined
}

function makeUsers(document: Document): YAMLSeq {
  if (!isMap(document.contents)) document.contents = document.createNode({})
  if (usersOf(document) === undefined) document.set('users', document.createNode([]))
  return document.get('users') as YAMLSeq
}

function entryOf(document: Document, name: string): YAMLMap | undefined {
  return usersOf(document)
    ?.items.filter((item) => isMap(item))
    .find((item) => item.get('name') === name)
}

/**
 * The new file has the same owner and group as before, and stays readable for the group if it was: a program that runs
 * as another user must still be able to read it.
 */
async function replaceFile(path: string, document: Document): Promise<void> {
  const before = await stat(path).catch(() => undefined)
  const hidden = `${path}.${process.pid}.new`
  await writeFile(hidden, document.toString({ lineWidth: 0 }), { mode: 0o600 })
  if (before !== undefined && (await keepOwner(hidden, before)))
    await chmod(hidden, 0o600 | (before.mode & 0o040))
  await rename(hidden, path)
}

/** Returns false if we lack the permission; the file then stays ours alone. */
async function keepOwner(path: string, { uid, gid }: Stats): Promise<boolean> {
  try {
    await chown(path, uid, gid)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPERM' && process.getuid?.() !== 0) return false
    throw error
  }
}

async function readOrEmpty(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
