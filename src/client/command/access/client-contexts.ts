/** The gateways that a user has logged in to, each under a name, in a file that nobody else can read. */
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { z } from 'zod'
import { parseConfig } from '../../../shared/base/config-file.ts'
import { ClientFailure, usageFailure } from '../../client-failure.ts'

const text = z.string().min(1)
/** Absolute paths of PEM files. */
const tls = { ca: text.optional(), cert: text.optional(), key: text.optional() }
const place = { url: z.url({ protocol: /^https?$/ }), ...tls }

const CONTEXT = z.union([
  z.strictObject({ ...place, user: text, password: text }),
  z.strictObject({ ...place, token: text }),
])

const FILE = z.strictObject({
  /** The default context. */
  current: text.optional(),
  contexts: z.record(z.string(), CONTEXT).default({}),
})

export type ClientContext = z.infer<typeof CONTEXT>
export type ClientContexts = z.infer<typeof FILE>

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
  return parseConfig(content, path, FILE)
}

export async function writeContexts(contexts: ClientContexts): Promise<void> {
  const path = contextsPath()
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE })
  const written = `${path}.${process.pid}`
  await writeFile(written, stringify(contexts), { mode: FILE_MODE, flush: true })
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
