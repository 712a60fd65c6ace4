/** Commander's messages about mistakes in a command line, with the flag that was probably meant. */
import type { Command } from 'commander'

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
  const meant = unknown === undefined ? undefined : MEANT[unknown]
  if (meant !== undefined && command.options.some(({ long, short }) => isFlag(meant, [long, short])))
    return `error: unknown option '${unknown}'\n(Did you mean ${meant}?)\n`
  if (text.startsWith('error: too many arguments') && command.options.some(({ short }) => short === '--bpf'))
    return `${text.trimEnd()}\n(a value with spaces needs quotation marks: --bpf 'tcp port 443')\n`
  return text
}

function isFlag(meant: string, names: readonly (string | undefined)[]): boolean {
  return names.includes(meant.split(' ')[0])
}

/** The command that the words lead to. REQUIRES: the commands that they name are defined. */
export function commandAt(program: Command, words: readonly string[]): Command {
  return words.reduce(
    (command, word) => command.commands.find((one) => one.name() === word) ?? command,
    program,
  )
}
