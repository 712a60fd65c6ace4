/** The gateways that a user has logged in to, each under a name, in a file that nobody else can read. */
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { ClientFailure, usageFailure } from '../../client-failure.ts'
import type { ClientContext, ClientContexts } from './contexts-file.ts'

/** Anyone who can read it can download as its user. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
const OTHERS = 0o077

/** `$XDG_CONFIG_HOME/capfleet/config.yaml`. */
export function contextsPath(): string {
  const { XDG_CONFIG_HOME: home = '' } = process.env
  return join(home === '' ? join(homedir(), '.config') : home, 'capfleet', 'config.yaml')
}

/** Empty if the file does not exist. Fails with bad-config. */
export async function readContexts(): Promise<ClientContexts> {
  const path = contextsPath()
  let content: string
  try {
    content = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { contexts: {} }
    throw error
  }
  const { mode } = await stat(path)
  if ((mode & OTHERS) !== 0) {
    throw new ClientFailure(
      'access',
      `other users may read the passwords in ${path}; run: chmod 600 ${path}`,
      {
        code: 'open-config',
      },
    )
  }
  const { parseContexts } = await import('./contexts-file.ts')
  return parseContexts(content, path)
}

export async function writeContexts(contexts: ClientContexts): Promise<void> {
  const { formatContexts } = await import('./contexts-file.ts')
  const path = contextsPath()
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE })
  const written = `${path}.${process.pid}`
  await writeFile(written, formatContexts(contexts), { mode: FILE_MODE, flush: true })
  await rename(written, path)
}

/** The context of this name, or the current one. Fails with a ClientFailure that says how to get one. */
export function chosenContext({ current, contexts }: ClientContexts, name = current): ClientContext {
  const chosen = name === undefined ? undefined : contexts[name]
  if (chosen !== undefined) return chosen
  const known = Object.keys(contexts)
  if (name === undefined) {
    throw usageFailure(
      known.length === 0
        ? 'not logged in to any gateway; log in first: capfleet login URL'
        : `no gateway is selected; select one with capfleet context use NAME: ${known.join(', ')}`,
    )
  }
  const hint = known.length === 0 ? 'log in first: capfleet login URL' : `known contexts: ${known.join(', ')}`
  throw usageFailure(`no context is named ${JSON.stringify(name)}; ${hint}`)
}
