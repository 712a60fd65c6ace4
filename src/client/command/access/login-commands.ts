/** Which gateway to use, and as which user: login and contexts. */

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { usageFailure } from '../../client-failure.ts'
import type { Credentials } from '../../gateway-client.ts'
import { type Column, type FormatOptions, formatOption, printListing } from '../common/list-output.ts'
import { readHidden, readPassword } from '../common/password-prompt.ts'
import { runClient } from '../common/run-client.ts'
import { chosenContext, contextsPath, readContexts, writeContexts } from './client-contexts.ts'
import { clientOf, gatewayUrl, type TlsPaths } from './connect.ts'

interface LoginOptions {
  readonly user?: string
  readonly passwordFile?: string
  readonly token?: true
  readonly name?: string
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

/** A context without its password. */
interface NamedContext {
  readonly name: string
  readonly url: string
  readonly user: string | undefined
  readonly isCurrent: boolean
}

const CONTEXT_COLUMNS: readonly Column<NamedContext>[] = [
  { title: 'current', value: ({ isCurrent }) => isCurrent, shown: ({ isCurrent }) => (isCurrent ? '*' : '') },
  { title: 'context', value: ({ name }) => name },
  { title: 'url', value: ({ url }) => url },
  { title: 'user', value: ({ user }) => user },
]

export function defineLogin(command: Command): void {
  command
    .argument('<url>', 'address of the gateway, such as https://capfleet.example.org')
    .option('--user <name>', 'user name; default: prompt for it')
    .option(
      '--password-file <file>',
      'file whose first line is the password; default: prompt for it, or read it from a pipe',
    )
    .option('--token', 'log in with a token, which is prompted for, or read from a pipe')
    .option('--name <context>', 'name of the context; default: the host of the address')
    .option('--ca <file>', 'a CA certificate (PEM) to trust in addition to those of the system')
    .option('--cert <file>', 'your own certificate (PEM), for a gateway that asks for one')
    .option('--key <file>', 'the private key of --cert (PEM)')
    .action((url: string, options: LoginOptions) => runClient((signal) => login(url, options, signal)))
}

async function login(text: string, options: LoginOptions, signal: AbortSignal): Promise<void> {
  const url = gatewayUrl(text)
  const credentials = await credentialsOf(options)
  const tls = tlsPathsOf(options)
  const client = await clientOf({ url, credentials }, tls)
  // A token may lack the rights for anything else.
  await client.json('token' in credentials ? '/v1/tokens' : '/v1/devices', { signal })
  const name = options.name ?? new URL(url).host
  const { contexts } = await readContexts()
  const context = { url, ...tls, ...credentials }
  await writeContexts({ current: name, contexts: { ...contexts, [name]: context } })
  warnOfPlainText(new URL(url))
  const whom = 'token' in credentials ? 'with a token' : `as ${credentials.user}`
  process.stderr.write(`logged in to ${url} ${whom}; saved as context ${name} in ${contextsPath()}\n`)
}

async function credentialsOf(options: LoginOptions): Promise<Credentials> {
  if (options.token === true) {
    const token = await readHidden('Token: ')
    if (token === '') throw usageFailure('the token is empty')
    return { token }
  }
  const user = options.user ?? (await askUser())
  return { user, password: await passwordOf(user, options) }
}

/** Absolute, because commands run in any folder. */
function tlsPathsOf({ ca, cert, key }: LoginOptions): TlsPaths {
  if ((cert === undefined) !== (key === undefined)) throw usageFailure('--cert and --key belong together')
  return {
    ...(ca === undefined ? {} : { ca: resolve(ca) }),
    ...(cert === undefined || key === undefined ? {} : { cert: resolve(cert), key: resolve(key) }),
  }
}

async function askUser(): Promise<string> {
  if (!process.stdin.isTTY)
    throw usageFailure('give the user name with --user; the password is read from the pipe')
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await lines.question('User: ')
  } finally {
    lines.close()
  }
}

async function passwordOf(user: string, { passwordFile }: LoginOptions): Promise<string> {
  const password =
    passwordFile === undefined
      ? await readPassword(user)
      : ((await readFile(passwordFile, 'utf8')).split(/\r?\n/)[0] ?? '')
  if (password === '') throw usageFailure('the password is empty')
  return password
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

function warnOfPlainText({ protocol, hostname }: URL): void {
  if (protocol === 'https:' || LOOPBACK.test(hostname)) return
  process.stderr.write(
    'capfleet: the credentials are sent over the network in plain text; use https:// if the gateway has TLS\n',
  )
}

export function defineContext(command: Command): void {
  command
    .command('list')
    .description('list the gateways you are logged in to')
    .addOption(formatOption())
    .action((options: FormatOptions) =>
      runClient(async () => {
        const { current, contexts } = await readContexts()
        const entries = Object.entries(contexts).map(([name, context]) => ({
          name,
          url: context.url,
          user: 'user' in context ? context.user : undefined,
          isCurrent: name === current,
        }))
        await printListing({ text: JSON.stringify(entries), entries, columns: CONTEXT_COLUMNS }, options)
      }),
    )
  command
    .command('use')
    .description('use this gateway from now on')
    .argument('<context>')
    .action((name: string) =>
      runClient(async () => {
        const all = await readContexts()
        chosenContext(all, name)
        await writeContexts({ ...all, current: name })
      }),
    )
  command
    .command('remove')
    .description('forget this gateway and the password for it')
    .argument('<context>')
    .action((name: string) =>
      runClient(async () => {
        const { current, contexts } = await readContexts()
        chosenContext({ current, contexts }, name)
        const { [name]: _removed, ...others } = contexts
        await writeContexts({ ...(current === name ? {} : { current }), contexts: others })
      }),
    )
}
