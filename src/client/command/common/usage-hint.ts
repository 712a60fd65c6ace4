/** Commander's messages about mistakes in a command line, with the flag that was probably meant. */
import type { Command } from 'commander'
import { nearestNames } from '../../../shared/query/nearest-names.ts'

/** Flags of tcpdump, curl and others, and words that people expect, with the flag that does the same. */
const MEANT: Readonly<Record<string, string>> = {
  '--filter': '--bpf',
  '-f': '--bpf',
  '--host': "--bpf 'host ...'",
  '--port': "--bpf 'port ...'",
  '--from': '--begin',
  '--since': '--begin',
  '--after': '--begin',
  '--to': '--end',
  '--until': '--end',
  '--before': '--end',
  '--tz': '--zone',
  '--timezone': '--zone',
  '--site': "--device 'site=...'",
  '-i': '--device',
  '-w': '--output',
  '--write': '--output',
  '--out': '--output',
  '--file': '--output',
  '-c': '--max-packets',
  '--count': '--max-packets',
  '-s': '--slice',
  '--snaplen': '--slice',
  '--gzip': '--compression best',
  '--zstd': '--compression zstd',
}

/** `words` are those that the user typed after "capfleet". */
export function withUsageHint(text: string, program: Command, words: readonly string[]): string {
  const command = commandAt(program, words)
  const [, unknown] = /^error: unknown option '([^'=]+)/.exec(text) ?? []
  if (unknown !== undefined && flagsOf(command).includes(unknown))
    return `error: ${unknown} is an option of ${pathOf(command)}, and must come after it\n`
  const meant = unknown === undefined ? undefined : meantFlag(unknown, flagsOf(command))
  if (meant !== undefined) return `error: unknown option '${unknown}'\n(Did you mean ${meant}?)\n`
  if (text.startsWith('error: too many arguments') && command.options.some(({ short }) => short === '--bpf'))
    return `${text.trimEnd()}\n(a value with spaces needs quotation marks: --bpf 'tcp port 443')\n`
  return text
}

/** Commander compares with the second name of an option alone, and of --begin, --ts-begin that is the rare one. */
function meantFlag(unknown: string, flags: readonly string[]): string | undefined {
  const known = MEANT[unknown]
  if (known !== undefined && flags.includes(known.split(' ')[0] ?? '')) return known
  return unknown.startsWith('--') ? nearestNames(unknown, flags, 1)[0] : undefined
}

function flagsOf({ options }: Command): readonly string[] {
  return options.flatMap(({ short, long }) => [short, long]).filter((flag) => flag !== undefined)
}

/** The command that the words lead to. REQUIRES: the commands that they name are defined. */
export function commandAt(program: Command, words: readonly string[]): Command {
  return words.reduce(
    (command, word) => command.commands.find((one) => one.name() === word) ?? command,
    program,
  )
}

/** "capfleet export list" */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}
