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

/** The commands for a shell: source the script, and complete these words of its command line. */
const ASKING = {
  bash: (words: readonly string[]) => [
    '--norc',
    '-c',
    `source <(capfleet completion bash); COMP_WORDS=(capfleet ${quoted(words)}); COMP_CWORD=${words.length}
     _capfleet; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ],
  // compadd works only in a line editor; here it prints its arguments.
  zsh: (words: readonly string[]) => [
    '-f',
    '-c',
    `compdef() { : }; compadd() { shift; print -l -- "$@" }; _files() { : }
     source <(capfleet completion zsh); words=(capfleet ${quoted(words)}); CURRENT=${words.length + 1}; _capfleet`,
  ],
  fish: (words: readonly string[]) => [
    '--no-config',
    '-c',
    `source (capfleet completion fish | psub); complete -C 'capfleet ${words.join(' ')}'`,
  ],
} as const

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

  const ask = (shell: keyof typeof ASKING, words: readonly string[]): Promise<readonly string[]> =>
    new Promise((resolve) => {
      const env = {
        ...gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD),
        PATH: path,
        HOME: client.home,
        XDG_CONFIG_HOME: client.home,
      }
      execFile(shell, ASKING[shell](words), { env, cwd: client.home }, (_error, stdout) =>
        resolve(stdout.split('\n').filter((line) => line !== '')),
      )
    })

  for (const shell of ['bash', 'zsh', 'fish'] as const) {
    const isThere = spawnSync(shell, ['--version']).error === undefined
    const skip = skipWithout(isThere, `${shell} is not installed (apt-get install ${shell})`)
    test(`in ${shell}: commands, flags, names of captures and of devices`, { skip }, async () => {
      assert.deepEqual(await ask(shell, ['capt']), ['captures'])
      assert.deepEqual(await ask(shell, ['export', 'sch']), ['schedule'])
      assert.deepEqual(await ask(shell, ['get', '--max-p']), ['--max-packets'])
      assert.deepEqual(await ask(shell, ['get', 'east-']), ['east-first', 'east-second'])
      assert.deepEqual(await ask(shell, ['captures', '--device', 'w']), ['west'])
      assert.deepEqual(await ask(shell, ['captures', '-o', 'js']), ['json', 'jsonl'])
    })
  }

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
