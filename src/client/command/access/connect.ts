/** Turns the options and environment of a command into the gateway to connect to. */

import { readFile } from 'node:fs/promises'
import { Option } from 'commander'
import { usageFailure } from '../../client-failure.ts'
import { type Credentials, type GatewayAccess, GatewayClient } from '../../gateway-client.ts'
import { chosenContext, readContexts } from './client-contexts.ts'
import type { ClientContext } from './contexts-file.ts'
import { nodeTransport, type TransportTls } from './node-transport.ts'

export interface ConnectOptions {
  readonly context?: string
}

export function contextOption(): Option {
  return new Option('--context <name>', 'which logged-in gateway to use; default: the current one').env(
    'CAPFLEET_CONTEXT',
  )
}

/** CAPFLEET_URL, and CAPFLEET_TOKEN or CAPFLEET_USER and CAPFLEET_PASSWORD, take precedence over the contexts. */
export async function connect({ context }: ConnectOptions): Promise<GatewayClient> {
  const { CAPFLEET_URL: url = '' } = process.env
  const given = givenCredentials()
  if (url !== '') {
    // The credentials of a context must not be sent to another address.
    if (given === undefined)
      throw usageFailure('CAPFLEET_URL also needs CAPFLEET_TOKEN, or CAPFLEET_USER and CAPFLEET_PASSWORD')
    return new GatewayClient(
      { url: gatewayUrl(url), credentials: given, loginAdvice: ENVIRONMENT_ADVICE },
      nodeTransport(),
    )
  }
  const chosen = chosenContext(await readContexts(), context)
  const access = given
    ? { credentials: given, loginAdvice: ENVIRONMENT_ADVICE }
    : { credentials: credentialsOf(chosen), loginAdvice: `log in again: capfleet login ${chosen.url}` }
  return clientOf({ url: chosen.url, ...access }, chosen)
}

const ENVIRONMENT_ADVICE =
  'the credentials are from the environment: CAPFLEET_TOKEN, or CAPFLEET_USER and CAPFLEET_PASSWORD'

function givenCredentials(): Credentials | undefined {
  const {
    CAPFLEET_TOKEN: token = '',
    CAPFLEET_USER: user = '',
    CAPFLEET_PASSWORD: password = '',
  } = process.env
  if (token !== '') return { token }
  return user === '' || password === '' ? undefined : { user, password }
}

/** `files` are the paths that the transport needs. */
export async function clientOf(access: GatewayAccess, files: TlsPaths): Promise<GatewayClient> {
  return new GatewayClient(access, nodeTransport(await readTls(files)))
}

export async function readTls(files: TlsPaths): Promise<TransportTls> {
  const named = TLS_FILES.flatMap((name) => {
    const path = files[name]
    return path === undefined ? [] : [readFile(path, 'utf8').then((text) => [name, text] as const)]
  })
  return Object.fromEntries(await Promise.all(named))
}

const TLS_FILES = ['ca', 'cert', 'key'] as const
export type TlsPaths = Readonly<Partial<Record<(typeof TLS_FILES)[number], string | undefined>>>

/** "http:/host" and "http:host", which would mean a host named http; "host:8080" is fine. */
const MISTYPED_SCHEME = /^[a-z]+:(?!\/\/|\d)/i

/** The address of a gateway in the form in which it is stored. Fails with a ClientFailure. */
export function gatewayUrl(text: string): string {
  const url = URL.parse(text.includes('://') ? text : `https://${text}`)
  if (url === null || !/^https?:$/.test(url.protocol) || MISTYPED_SCHEME.test(text)) {
    throw usageFailure(
      `${JSON.stringify(text)} is not the address of a gateway; it should look like https://capfleet.example.org`,
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw usageFailure(
      'leave name and password out of the address; give the user with --user, and the password is prompted for',
    )
  }
  url.search = ''
  url.hash = ''
  return url.href
}

function credentialsOf(context: ClientContext): Credentials {
  return 'token' in context ? { token: context.token } : { user: context.user, password: context.password }
}
