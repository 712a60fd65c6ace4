/** `capfleet user`: the users file of a gateway or an appliance. Running programs read it again when it changes. */
import { readFile } from 'node:fs/promises'
import { type Column, type FormatOptions, printListing } from '../client/command/common/list-output.ts'
import { readNewPassword } from '../client/command/common/password-prompt.ts'
import { changePassword, putUser, removeUser } from '../shared/auth/edit-users-file.ts'
import { type ListedUser, listUsers } from '../shared/auth/users-file.ts'
import { CapfleetError } from '../shared/base/error.ts'
import type { Role } from '../shared/base/scopes.ts'

export interface FileOptions {
  readonly file: string
}

export interface AddOptions extends FileOptions {
  readonly role: Role
  readonly saltFile?: string
}

export async function addUser(name: string, { file, role, saltFile }: AddOptions): Promise<void> {
  const salt = saltFile === undefined ? undefined : await readSalt(saltFile)
  const password = await readNewPassword(name)
  // If a salt is given, the file is generated repeatedly, for the same users.
  const since = salt === undefined ? new Date() : undefined
  const outcome = await putUser(file, { name, role, since }, password, salt)
  tell(`${outcome} user ${name} (${role}) in ${file}; running programs apply it automatically`)
}

const COLUMNS: readonly Column<ListedUser>[] = [
  { title: 'user', value: ({ name }) => name },
  { title: 'role', value: ({ role }) => role },
  { title: 'since', value: ({ since }) => since },
  { title: 'devices', value: ({ devices }) => devices },
  { title: 'filter', value: ({ filter }) => filter },
  { title: 'span s', value: ({ spanMaxS }) => spanMaxS },
  { title: 'bytes/day', value: ({ bytesPerDay }) => bytesPerDay },
  { title: 'streams', value: ({ streamsMax }) => streamsMax },
]

export async function printUsers({ file, output }: FileOptions & FormatOptions): Promise<void> {
  const entries = await listUsers(file)
  await printListing({ text: JSON.stringify(entries), entries, columns: COLUMNS }, { output })
}

export async function takeUserAway(name: string, { file }: FileOptions): Promise<void> {
  await removeUser(file, name)
  tell(`removed user ${name} from ${file}; running programs reject them at once, and cut their downloads`)
}

export async function setPassword(name: string, { file }: FileOptions): Promise<void> {
  await changePassword(file, name, await readNewPassword(name))
  tell(
    `changed the password of ${name} in ${file}; running programs require the new one at once; running downloads continue`,
  )
}

/** A hash in the users file can contain a salt of at most 64 bytes. */
const SALT = /^[A-Za-z0-9+/=]{16,64}$/

async function readSalt(path: string): Promise<Buffer> {
  const text = (await readFile(path, 'utf8')).trim()
  if (SALT.test(text)) return Buffer.from(text)
  throw new CapfleetError(
    'bad-parameter',
    `${path} must have 16 to 64 characters of A-Z, a-z, 0-9, +, / and =`,
  )
}

function tell(text: string): void {
  process.stderr.write(`${text}\n`)
}
