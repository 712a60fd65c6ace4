import { putUser } from '../auth/users-file.ts'
import type { Role } from '../base/scopes.ts'
import { readNewPassword } from './password-prompt.ts'

/** `capfleet user add`: puts a user with a hashed password into a users file. */
export async function addUser(name: string, options: { file: string; role: Role }): Promise<void> {
  const password = await readNewPassword(name)
  const outcome = await putUser(options.file, { name, role: options.role }, password)
  process.stderr.write(
    `${outcome} user ${name} (${options.role}) in ${options.file}; programs that run take it over by themselves\n`,
  )
}
