// Every command has an example in its help, and each example is one that the command accepts.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { Command } from 'commander'
import { addClientCommands, CLIENT_COMMANDS } from '../../../../src/client/command/client-commands.ts'
import { allBelow, COMMAND_EXAMPLES, wordsOf } from '../../../../src/client/command/command-examples.ts'
import { REPOSITORY_ROOT } from '../../../support/repository-files.ts'

/** The arguments of the first program of a line, without what the shell does with its input and output. */
function argumentsOf(line: string): readonly string[] {
  const words = line.match(/'[^']*'|"[^"]*"|[^\s'"]+/g) ?? []
  const end = words.findIndex((word) => /^[|<>#]/.test(word))
  return words.slice(1, end < 0 ? undefined : end).map((word) => word.replaceAll(/^['"]|['"]$/g, ''))
}

async function clientProgram(): Promise<Command> {
  const program = new Command('capfleet').exitOverride()
  await addClientCommands(program, Object.keys(CLIENT_COMMANDS))
  return program
}

test('every command that asks a gateway has an example, which it accepts', async () => {
  const program = await clientProgram()
  const leaves = allBelow(program).filter(({ commands }) => commands.length === 0)
  assert.ok(leaves.length > 20)
  for (const leaf of leaves) {
    const lines = COMMAND_EXAMPLES[wordsOf(leaf)] ?? []
    assert.ok(lines.length > 0, `${wordsOf(leaf)} has no example`)
    for (const line of lines) {
      let hasRun = false
      leaf.action(() => {
        hasRun = true
      })
      leaf.exitOverride()
      leaf.configureOutput({ writeErr: () => undefined })
      await program.parseAsync(argumentsOf(line), { from: 'user' })
      assert.ok(hasRun, line)
    }
  }
})

test('the help of the longest flags is wrapped, and does not fill a terminal of 80 columns line by line', async () => {
  const { stdout } = await promisify(execFile)(join(REPOSITORY_ROOT, 'src/capfleet'), ['get', '--help'])
  const flags = stdout.split('\n').filter((line) => /^ {2}-/.test(line))
  assert.ok(flags.length > 20)
  assert.deepEqual(
    flags.filter((line) => line.length > 80),
    [],
  )
})

test('the help of every other command has an example, with flags that it lists', async () => {
  const texts = new Map<string, string>()
  const help = async (words: readonly string[]): Promise<string> => {
    const key = words.join(' ')
    const known = texts.get(key)
    if (known !== undefined) return known
    const { stdout } = await promisify(execFile)(join(REPOSITORY_ROOT, 'src/capfleet'), [...words, '--help'])
    texts.set(key, stdout)
    return stdout
  }
  const own = new Set(allBelow(await clientProgram()).map(wordsOf))
  const others: string[] = []
  for (const name of commandsIn(await help([])).filter((word) => word !== 'help')) {
    const below = own.has(name) && name !== 'audit' ? [] : commandsIn(await help([name]))
    others.push(...(below.length === 0 ? [name] : below.map((sub) => `${name} ${sub}`)))
  }
  const checked = others.filter((words) => !own.has(words) && !words.endsWith(' help'))
  assert.ok(checked.length > 10, checked.join())
  for (const words of checked) {
    const text = await help(words.split(' '))
    const lines = COMMAND_EXAMPLES[words] ?? []
    assert.ok(lines.length > 0, `${words} has no example`)
    for (const line of lines) {
      assert.ok(text.includes(`  ${line}\n`), `${words} --help shows ${line}`)
      const flags = line.match(/(?<= )--?[a-z][a-z-]*/g) ?? []
      for (const flag of flags) assert.ok(text.split('Example')[0]?.includes(flag), `${words} has ${flag}`)
    }
  }
  const known = new Set([...own, ...checked, 'appliance'])
  assert.deepEqual(
    Object.keys(COMMAND_EXAMPLES).filter((words) => !known.has(words)),
    [],
  )
})

/** The names in the lists of commands of a help text. */
function commandsIn(help: string): readonly string[] {
  const sections = help.split(/^(?=[A-Z][^\n]*:$)/m)
  return sections
    .filter((section) => /^(Commands|Ask a gateway|Run the programs):/.test(section))
    .flatMap((section) => [...section.matchAll(/^ {2}([a-z][a-z-]*) /gm)])
    .map(([, name = '']) => name)
}

test('everyday options come first in the help of a download', async () => {
  const { stdout } = await promisify(execFile)(join(REPOSITORY_ROOT, 'src/capfleet'), ['get', '--help'])
  const headings = stdout.match(/^[A-Z][A-Za-z ]+:$/gm) ?? []
  assert.deepEqual(headings.slice(0, 2), ['Arguments:', 'Everyday options:'])
  const [, everyday = ''] = stdout.split('Everyday options:')
  for (const flag of ['--last', '-d, --device', '--begin', '--end', '--bpf', '-o, --output'])
    assert.ok(everyday.split('\n\n')[0]?.includes(`  ${flag}`), flag)
})
