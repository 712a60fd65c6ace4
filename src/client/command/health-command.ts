/**
 * Whether a program is running, for the health check of a container. An unreachable Redis or device does not make it
 * unhealthy.
 */
import type { Command } from 'commander'
import { JoinedSignal } from '../../shared/base/joined-signal.ts'
import { runProgram } from '../../shared/base/program.ts'
import { ClientFailure } from '../client-failure.ts'
import { chosenContext, readContexts } from './access/client-contexts.ts'
import { type ConnectOptions, contextOption, gatewayUrl, readTls, type TlsPaths } from './access/connect.ts'
import { nodeTransport } from './access/node-transport.ts'

const DEFAULT_URL = 'http://127.0.0.1:8080'
/** A program whose event loop is blocked for this long is unhealthy. */
const ANSWER_LIMIT_MS = 5_000

export function defineHealth(command: Command): void {
  command
    .argument(
      '[url]',
      `address of a gateway, worker or appliance; default: $CAPFLEET_HEALTH_URL, else the gateway you are logged in to, else ${DEFAULT_URL}`,
    )
    .option('--ca <file>', 'a CA certificate (PEM) to trust in addition to those of the system')
    .option('--cert <file>', 'your own certificate (PEM), for a server that requires one')
    .option('--key <file>', 'the private key of --cert (PEM)')
    .addOption(contextOption())
    .action((url: string | undefined, options: HealthOptions) =>
      runProgram(async (signal) => askHealth(await programOf(url, options), signal), {
        describe: (error) => (error instanceof Error ? error.message : String(error)),
      }),
    )
}

type HealthOptions = TlsPaths & ConnectOptions

interface AskedProgram {
  readonly url: string
  readonly files: TlsPaths
}

/** A container names its own program in the environment, which takes precedence over the contexts of a person. */
async function programOf(
  url: string | undefined,
  { context, ...files }: HealthOptions,
): Promise<AskedProgram> {
  const { CAPFLEET_HEALTH_URL: ownUrl = '', CAPFLEET_URL: gateway = '' } = process.env
  const given = url ?? (ownUrl || gateway)
  if (given !== '') return { url: given, files }
  const contexts = await readContexts()
  if (context === undefined && contexts.current === undefined) return { url: DEFAULT_URL, files }
  const chosen = chosenContext(contexts, context)
  return { url: chosen.url, files: { ca: chosen.ca, cert: chosen.cert, key: chosen.key, ...files } }
}

/** Fails with a ClientFailure if the program does not confirm in time that it is running. */
async function askHealth({ url: text, files }: AskedProgram, signal: AbortSignal): Promise<void> {
  const url = new URL(`${gatewayUrl(text).replace(/\/$/, '')}/livez`)
  using limit = new JoinedSignal([signal], ANSWER_LIMIT_MS)
  const send = nodeTransport(await readTls(files))
  try {
    using answer = await send({ method: 'GET', url, headers: {}, signal: limit.signal })
    if (answer.status !== 200) throw notWell(`${url} answers with status ${answer.status}`)
  } catch (error) {
    const late = error instanceof Error && error.name === 'TimeoutError'
    throw late ? notWell(`${url} did not answer within ${ANSWER_LIMIT_MS / 1000} s`) : error
  }
}

function notWell(message: string): ClientFailure {
  return new ClientFailure('device', message, { code: 'not-well' })
}
