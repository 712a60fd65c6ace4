/** `capfleet token`: credentials for programs, with the user's rights or fewer. */
import type { Command } from 'commander'
import type { z } from 'zod'
import type { NEW_TOKEN, TOKENS } from '../../../shared/contract/token-api.ts'
import { orderedToken, TOKEN_PARAMETERS, USUAL_SCOPES } from '../../../shared/contract/token-parameters.ts'
import { usageFailure } from '../../client-failure.ts'
import type { QueryPairs } from '../../gateway-client.ts'
import {
  type Column,
  type FormatOptions,
  formatOption,
  print,
  printListing,
  shownInstant,
} from '../common/list-output.ts'
import { type GivenOptions, QueryFlags } from '../common/query-flags.ts'
import { runClient } from '../common/run-client.ts'
import { writtenId } from '../common/written-id.ts'
import { type ConnectOptions, connect, contextOption } from './connect.ts'

type Token = z.infer<typeof TOKENS>['tokens'][number]

const COLUMNS: readonly Column<Token>[] = [
  { title: 'token', value: ({ id }) => id },
  { title: 'user', value: ({ user }) => user },
  {
    title: 'expires',
    value: ({ expiresAt }) => expiresAt,
    shown: ({ expiresAt }) => shownInstant(expiresAt),
  },
  {
    title: 'revoked',
    value: ({ revokedAt }) => revokedAt,
    shown: ({ revokedAt }) => shownInstant(revokedAt),
  },
  { title: 'scopes', value: ({ scopes }) => scopes.join(' ') },
  { title: 'devices', value: ({ bounds }) => bounds.devices.join(' and ') || null },
  { title: 'filter', value: ({ bounds }) => bounds.filters.join(' and ') || null },
  { title: 'note', value: ({ note }) => note },
]

export function defineToken(command: Command): void {
  defineCreate(
    command
      .command('create')
      .description(
        `create a token with your rights or fewer; prints it, only this once, and its id on stderr. Its scopes are ${USUAL_SCOPES} ` +
          "unless --scopes names others, or all; --devices '*' gives it all devices that you see",
      ),
  )
  command
    .command('list')
    .description('list your tokens that have not expired')
    .addOption(formatOption())
    .addOption(contextOption())
    .action((options: ConnectOptions & FormatOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const { text, value } = await client.json<z.infer<typeof TOKENS>>('/v1/tokens', { signal })
        await printListing({ text, entries: value.tokens, columns: COLUMNS }, options)
      }),
    )
  command
    .command('revoke')
    .description('revoke a token, and all tokens created with it; downloads that use them are cut')
    .argument('<token>', 'its id')
    .addOption(contextOption())
    .action((id: string, options: ConnectOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const written = writtenId(id, 'token', 'capfleet token list lists the ids')
        await client.json(`/v1/tokens/${encodeURIComponent(written)}`, { method: 'DELETE', signal })
      }),
    )
}

/** As on the page, but a token for everything must be asked for. */
const CREATE_FLAGS = {
  ...TOKEN_PARAMETERS,
  scopes: { ...TOKEN_PARAMETERS.scopes, defaultSays: USUAL_SCOPES },
  devices: { ...TOKEN_PARAMETERS.devices, defaultSays: "an error; '*' gives all that you see" },
}

function defineCreate(command: Command): void {
  const flags = new QueryFlags([CREATE_FLAGS])
  flags
    .addTo(command)
    .addOption(contextOption())
    .action((options: ConnectOptions & GivenOptions) =>
      runClient(async (signal) => {
        const client = await connect(options)
        const { value } = await client.json<z.infer<typeof NEW_TOKEN>>('/v1/tokens', {
          method: 'POST',
          query: orderedToken(describedToken(flags.query(options))),
          signal,
        })
        process.stderr.write(`token ${value.id}, good until ${shownInstant(value.expiresAt)}\n`)
        await print(`${value.token}\n`)
      }, flags.flagOf),
    )
}

/**
 * The given parameters plus the usual scopes. Fails with a usage failure if the devices of the token are not
 * specified.
 */
function describedToken(given: QueryPairs): QueryPairs {
  const has = (name: string) => given.some(([other]) => other === name)
  if (!has('Devices'))
    throw usageFailure(
      "--devices is missing; name the devices of the token, or --devices '*' for all that you see",
    )
  return has('Scopes') ? given : [...given, ['Scopes', USUAL_SCOPES]]
}
