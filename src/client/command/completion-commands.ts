/**
 * Completion of the command line. A shell's script asks `capfleet __complete <words>` for possible values of the last
 * word, so it is never older than the program.
 */
import type { Command, Option } from 'commander'
import type { z } from 'zod'
import type { FLEET_CAPTURE_LIST } from '../../shared/contract/capture-answers.ts'
import type { DEVICE_REPORTS } from '../../shared/contract/gateway-answers.ts'
import { readContexts } from './access/client-contexts.ts'
import { connect } from './access/connect.ts'
import { print } from './common/list-output.ts'
import { runClient } from './common/run-client.ts'
import { commandAt } from './common/usage-hint.ts'

const SCRIPTS = {
  bash: `_capfleet() {
  local found
  COMPREPLY=()
  while IFS= read -r found; do
    COMPREPLY+=("$found")
  done < <("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _capfleet capfleet
`,
  zsh: `#compdef capfleet
_capfleet() {
  local -a found
  found=("\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "\${found[*]}" ]] && compadd -- "\${found[@]}" || _files
}
compdef _capfleet capfleet
`,
  fish: `function __capfleet_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c capfleet -a '(__capfleet_complete)'
`,
} as const

/** Words that need no quoting: a capture name must not be interpreted by the shell as a command. */
const SAFE_WORD = /^[\w.,:@%+/=-]+$/

/** A user is waiting at the keyboard. */
const ANSWER_MS = 2_000

export function defineCompletion(command: Command): void {
  for (const [shell, script] of Object.entries(SCRIPTS)) {
    command
      .command(shell)
      .description(`print the script for ${shell}`)
      .action(() => runClient(() => print(script)))
  }
}

export function defineComplete(command: Command): void {
  command
    .argument('[words...]')
    .allowUnknownOption()
    .action(async (words: string[]) => {
      const found = await candidates(command.parent, words).catch(() => [])
      await print(found.map((text) => `${text}\n`).join(''))
    })
}

async function candidates(program: Command | null, words: readonly string[]): Promise<readonly string[]> {
  if (program === null) return []
  const current = words.at(-1) ?? ''
  const command = commandAt(program, words.slice(0, -1))
  const flag = flagOf(command, words.at(-2))
  const all = flag?.required === true ? await valuesOf(flag) : await wordsOf(command, current)
  return all.filter((text) => text.startsWith(current) && SAFE_WORD.test(text))
}

function flagOf(command: Command, word: string | undefined): Option | undefined {
  return command.options.find(({ long, short }) => word !== undefined && (word === long || word === short))
}

async function wordsOf(command: Command, current: string): Promise<readonly string[]> {
  if (current.startsWith('-')) return command.options.flatMap(({ long }) => long ?? [])
  const visible = command.createHelp().visibleCommands(command)
  if (visible.length > 0) return visible.map((one) => one.name())
  const [argument] = command.registeredArguments
  if (argument?.name() === 'capture') return await captureNames()
  return argument?.name() === 'context' ? await contextNames() : []
}

async function valuesOf(flag: Option): Promise<readonly string[]> {
  if (flag.argChoices !== undefined) return flag.argChoices
  if (flag.long === '--device') return await deviceNames()
  return flag.long === '--context' ? await contextNames() : []
}

async function deviceNames(): Promise<readonly string[]> {
  const client = await connect({})
  const { value } = await client.json<z.infer<typeof DEVICE_REPORTS>>('/v1/devices', within())
  return value.devices.map(({ name }) => name)
}

async function captureNames(): Promise<readonly string[]> {
  const client = await connect({})
  const query = [['Limit', '1000']] as const
  const { value } = await client.json<z.infer<typeof FLEET_CAPTURE_LIST>>('/stream/list', {
    query,
    ...within(),
  })
  return value.List.map(({ StreamName }) => StreamName)
}

async function contextNames(): Promise<readonly string[]> {
  return Object.keys((await readContexts()).contexts)
}

function within(): { readonly signal: AbortSignal } {
  return { signal: AbortSignal.timeout(ANSWER_MS) }
}
