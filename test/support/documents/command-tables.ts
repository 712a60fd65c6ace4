/** The command-line tables of docs/reference/command-line.md, generated from the commands themselves. */
import { Command } from 'commander'
import { addClientCommands, CLIENT_COMMANDS } from '../../../src/client/command/client-commands.ts'
import { QueryFlags } from '../../../src/client/command/common/query-flags.ts'
import { DOWNLOAD_TABLES } from '../../../src/shared/query/download/parse-download-query.ts'
import { code, table } from './reference-tables.ts'

/** Every command that calls a gateway, with its own flags; then the flags of downloads. */
export async function commandTables(): Promise<string> {
  const program = new Command('capfleet')
  await addClientCommands(program, Object.keys(CLIENT_COMMANDS))
  const shared = new Set(downloadFlags().map(({ flag }) => flag))
  const rows = program.commands.flatMap(leavesOf).map((command) => {
    const own = command.options.filter(({ long }) => !shared.has(long ?? ''))
    const takesDownload = command.options.length - own.length > 3
    return [
      code(usageOf(command)),
      command.description(),
      [
        ...(takesDownload ? ['those of a download'] : []),
        ...(takesDownload ? own : command.options).map(({ flags }) => code(flags)),
      ].join(', '),
    ]
  })
  const flags = downloadFlags().map(({ flags, name }) => [code(flags), code(name)])
  return [
    table(['Command', 'What', 'Flags'], rows),
    'Flags of downloads, and the parameters that they give (see Parameters):',
    table(['Flag', 'Parameter'], flags),
  ].join('\n\n')
}

function downloadFlags(): readonly {
  readonly flag: string
  readonly flags: string
  readonly name: string
}[] {
  const rows = new QueryFlags(DOWNLOAD_TABLES.fleet)
  const command = rows.addTo(new Command())
  const names = new Map(
    DOWNLOAD_TABLES.fleet
      .flatMap((one) => Object.values(one))
      .map(({ name }) => [rows.flagOf(name), name] as const),
  )
  return command.options.map(({ flags, long = '', short = '' }) => ({
    flag: long,
    flags,
    name: names.get(long) ?? names.get(short) ?? '',
  }))
}

/** Commands that do something: those without subcommands, and those with options of their own. */
function leavesOf(command: Command): readonly Command[] {
  const own = command.commands.length === 0 || command.options.length > 0 ? [command] : []
  return [...own, ...command.commands.flatMap(leavesOf)]
}

/** "capfleet export get <export>" */
function usageOf(command: Command): string {
  const names: string[] = []
  for (let at: Command | null = command; at !== null; at = at.parent) names.unshift(at.name())
  const args = command.registeredArguments.map((one) =>
    one.required ? `<${one.name()}>` : `[${one.name()}]`,
  )
  return [...names, ...args].join(' ')
}
