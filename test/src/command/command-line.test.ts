// The command line as a user starts it: from another folder, by a link, with whatever Node.js the machine has.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { tempFolder } from '../../support/temp-folder.ts'

interface Ended {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Without the project's Node.js in the PATH. */
function run(program: string, args: readonly string[], { cwd = '/', input = '' } = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      program,
      [...args],
      { cwd, env: { PATH: '/usr/bin:/bin' } },
      (_error, stdout, stderr) => resolve({ status: child.exitCode, stdout, stderr }),
    )
    child.stdin?.end(input)
  })
}

const CAPFLEET = join(REPOSITORY_ROOT, 'src/capfleet')

test('says its version, from another folder and by a link', async () => {
  await using folder = await tempFolder()
  const link = join(folder.path, 'capfleet')
  await symlink(CAPFLEET, link)
  const { version } = JSON.parse(await readFile(join(REPOSITORY_ROOT, 'package.json'), 'utf8')) as {
    readonly version: string
  }
  for (const program of [CAPFLEET, link])
    assert.deepEqual(await run(program, ['--version']), {
      status: 0,
      stdout: `capfleet ${version}\n`,
      stderr: '',
    })
})

test('the help of a subcommand names what it needs', async () => {
  const { status, stdout } = await run(CAPFLEET, ['appliance', 'doctor', '--help'])
  assert.equal(status, 0)
  assert.match(stdout, /--config <file>/)
})

test('an import into a store that is not there makes none, unless it is told to', async () => {
  await using folder = await tempFolder()
  const refused = await run(CAPFLEET, ['import', '/dev/null', '--store', join(folder.path, 'misspelt')])
  assert.equal(refused.status, 1)
  assert.match(refused.stderr, /^capfleet: there is no store at \S+\/misspelt; .*--create/)
  assert.deepEqual(await readdir(folder.path), [])
})

test('a short password is refused and changes nothing', async () => {
  await using folder = await tempFolder()
  const file = join(folder.path, 'users.yaml')
  const add = ['user', 'add', 'ann', '--file', file]
  const refused = await run(CAPFLEET, add, { input: 'seven77\n' })
  assert.deepEqual([refused.status, await readdir(folder.path)], [1, []])
  assert.match(refused.stderr, /fewer than 8 characters/)
  assert.equal((await run(CAPFLEET, add, { input: 'eight888\n' })).status, 0)
})
