// Completion as the shells request it, with names from a real gateway.

import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../support/processes/client-process.ts'
import { type SmallFleet, startSmallFleet } from '../../../support/processes/small-fleet.ts'
import { REPOSITORY_ROOT } from '../../../support/repository-files.ts'
import { startStubGateway } from '../../../support/servers/stub-gateway.ts'
import { skipWithout } from '../../../support/set-up-tools.ts'
import { USER_PASSWORD } from '../../../support/suite-secrets.ts'

/** The commands for a shell: source the script, and complete the words of each of these command lines. */
const ASKING = {
  bash: (lines: readonly Line[]) => [
    '--norc',
    '-c',
    `source <(capfleet completion bash)
     ask() { COMP_WORDS=(capfleet "$@"); COMP_CWORD=$#; _capfleet; printf '%s\\n' "\${COMPREPLY[@]}" ${END}; }
     ${lines.map((words) => `ask ${quoted(words)}`).join('\n')}`,
  ],
  // compadd works only in a line editor; here it prints its arguments.
  zsh: (lines: readonly Line[]) => [
    '-f',
    '-c',
    `compdef() { : }; compadd() { shift; print -l -- "$@" }; _files() { : }
     source <(capfleet completion zsh)
     ask() { words=(capfleet "$@"); CURRENT=$(($# + 1)); _capfleet; print ${END} }
     ${lines.map((words) => `ask ${quoted(words)}`).join('\n')}`,
  ],
  fish: (lines: readonly Line[]) => [
    '--no-config',
    '-c',
    `source (capfleet completion fish | psub)
     ${lines.map((words) => `complete -C 'capfleet ${words.join(' ')}'; echo ${END}`).join('\n')}`,
  ],
} as const

type Line = readonly string[]
/** The end of the answers to one command line. */
const END = 'the-end'

const quoted = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' ')

describe('completion', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let client: TempClient
  let path = ''

  before(async () => {
    fleet = parts.use(await startSmallFleet())
    client = parts.use(await hostedClient())
    const bin = join(client.folder, 'bin')
    await mkdir(bin)
    await symlink(join(REPOSITORY_ROOT, 'src/capfleet'), join(bin, 'capfleet'))
    path = `${bin}:${process.env.PATH}`
  })
  after(() => parts.disposeAsync())

  /** The names for each command line. */
  const ask = (shell: keyof typeof ASKING, lines: readonly Line[]): Promise<readonly string[][]> =>
    new Promise((resolve) => {
      const env = {
        ...gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD),
        PATH: path,
        HOME: client.home,
        XDG_CONFIG_HOME: client.home,
      }
      execFile(shell, ASKING[shell](lines), { env, cwd: client.home }, (_error, stdout) =>
        resolve(
          stdout
            .split(`${END}\n`)
            .slice(0, -1)
            .map((names) => names.split('\n').slice(0, -1)),
        ),
      )
    })

  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    const isThere = spawnSync(shell, ['--version']).error === undefined
    const skip = skipWithout(isThere, `${shell} is not installed (apt-get install ${shell})`)
    test(`in ${shell}: the words up to the one that is typed, and all names that fit`, { skip }, async () => {
      const lines = [['capt'], ['get', 'east-'], ['captures', '--device', 'w']]
      const names = [['captures'], ['east-first', 'east-second'], ['west']]
      assert.deepEqual(await ask(shell, lines), names)
    })
  }

  test('commands, flags, names of captures and of devices', async () => {
    const environment = gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD)
    for (const [words, names] of [
      [['export', 'sch'], 'schedule'],
      [['get', '--max-p'], '--max-packets'],
      [['get', 'east-'], 'east-first\neast-second'],
      [['captures', '--device', 'w'], 'west'],
      [['captures', '-o', 'js'], 'json\njsonl'],
    ] as const) {
      const { stdout } = await client.run(['__complete', '--', ...words], { environment })
      assert.equal(stdout.toString(), `${names}\n`)
    }
  })

  test('is silent and quick where no gateway is known, or none answers', async () => {
    let commandMs = 0
    for (const environment of [{}, gatewayEnvironment('http://127.0.0.1:9', 'a', 'b')]) {
      const startedMs = performance.now()
      const { status, stdout, stderr } = await client.run(['__complete', '--', 'get', ''], { environment })
      assert.deepEqual([status, stdout.length, stderr], [0, 0, ''])
      commandMs = Math.max(commandMs, performance.now() - startedMs)
    }
    await using silent = await startStubGateway({ 'GET /v1/devices': () => undefined })
    const startedMs = performance.now()
    const environment = gatewayEnvironment(silent.url, 'a', 'b')
    assert.equal((await client.run(['__complete', '--', 'get', '--device', ''], { environment })).status, 0)
    // On a busy machine even a single command takes long.
    assert.ok(performance.now() - startedMs < 8_000 + 3 * commandMs)
  })

  test('a name that a shell would run is left out', async () => {
    const names = ['good', '$(reboot)', 'a b', '`id`', 'x;y']
    await using gateway = await startStubGateway({
      'GET /v1/devices': (_req, res) =>
        void res.end(JSON.stringify({ devices: names.map((name) => ({ name })) })),
    })
    const environment = gatewayEnvironment(gateway.url, 'a', 'b')
    const { stdout } = await client.run(['__complete', '--', 'status', '-d', ''], { environment })
    assert.equal(stdout.toString(), 'good\n')
  })

  test('names of contexts come from the file alone', async () => {
    const folder = join(client.home, 'capfleet')
    await mkdir(folder)
    const context = { url: 'http://127.0.0.1:9/', user: 'ann', password: 'secret' }
    await writeFile(
      join(folder, 'config.yaml'),
      JSON.stringify({ contexts: { lab: context, live: context } }),
      {
        mode: 0o600,
      },
    )
    assert.equal(
      (await client.run(['__complete', '--', 'context', 'use', 'l'])).stdout.toString(),
      'lab\nlive\n',
    )
  })
})
