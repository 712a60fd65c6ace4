// The command line as a user starts it: from another folder, through a link, with any Node.js on the machine.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { loadUsers } from '../support/access/loaded-users.ts'
import { hostedClient, type TempClient } from '../support/processes/client-process.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

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

test('an import into a missing store creates none, unless asked to', async () => {
  await using folder = await tempFolder()
  const refused = await run(CAPFLEET, ['import', '/dev/null', '--store', join(folder.path, 'misspelt')])
  assert.equal(refused.status, 1)
  assert.match(refused.stderr, /^capfleet: there is no store at \S+\/misspelt; .*--create/)
  assert.deepEqual(await readdir(folder.path), [])
})

describe('capfleet user', () => {
  let client: TempClient
  before(async () => {
    client = await hostedClient()
  })
  after(() => client[Symbol.asyncDispose]())

  async function usersFile(t: TestContext) {
    const folder = await tempFolder()
    t.after(() => folder[Symbol.asyncDispose]())
    const file = join(folder.path, 'users.yaml')
    const user = async (args: readonly string[], password = ''): Promise<Ended> => {
      const end = await client.run(['user', ...args, '--file', file], { input: `${password}\n` })
      return { ...end, stdout: end.stdout.toString() }
    }
    return { folder: folder.path, file, user }
  }

  test('a short password is refused and changes nothing', async (t) => {
    const { folder, user } = await usersFile(t)
    const refused = await user(['add', 'ann'], 'eleven78901')
    assert.deepEqual([refused.status, await readdir(folder)], [1, []])
    assert.match(refused.stderr, /fewer than 12 characters/)
    assert.equal((await user(['add', 'ann'], 'twelve789012')).status, 0)
    const [before, short] = [(await user(['list'])).stdout, await user(['password', 'ann'], 'eleven78901')]
    assert.equal(short.status, 1)
    assert.equal((await user(['list'])).stdout, before)
  })

  test('users are added, listed, given another password and removed; each says what programs do', async (t) => {
    const { file, user } = await usersFile(t)
    const beforeMs = Date.now()
    await user(['add', 'ann', '--role', 'full'], 'the first password')
    await user(['add', 'bob'], 'the first password')
    assert.match((await user(['list'])).stdout, /^USER +ROLE.*\nann +full.*\nbob +user.*\n$/)
    const listed: Record<string, string>[] = JSON.parse((await user(['list', '-o', 'json'])).stdout)
    assert.deepEqual(
      listed.map(({ since: _, ...facts }) => facts),
      [
        { name: 'ann', role: 'full' },
        { name: 'bob', role: 'user' },
      ],
    )
    for (const { since = '' } of listed) {
      const ms = Date.parse(since)
      assert.ok(ms >= beforeMs - 1_000 && ms <= Date.now(), since)
    }
    const users = await loadUsers(file)
    const changed = await user(['password', 'ann'], 'the second password')
    assert.match(changed.stderr, /^changed the password of ann in .*; running programs require the new one/)
    await users.reload()
    const login = (password: string) => users.verify(`Basic ${btoa(`ann:${password}`)}`, '192.0.2.1')
    assert.equal(await login('the first password'), undefined)
    assert.equal((await login('the second password'))?.name, 'ann')
    const removed = await user(['remove', 'ann'])
    assert.match(removed.stderr, /^removed user ann from .*; running programs reject them at once/)
    assert.match((await user(['list'])).stdout, /^USER +ROLE.*\nbob +user.*\n$/)
  })

  test('the same password and salt make the same file, as replicas need it', async (t) => {
    const [one, two] = [await usersFile(t), await usersFile(t)]
    const salt = join(one.folder, 'salt')
    await writeFile(salt, 'sixteen16letters\n')
    for (const { user } of [one, two]) {
      const added = await user(['add', 'ann', '--salt-file', salt], 'a long password')
      assert.equal(added.status, 0, added.stderr)
    }
    assert.equal(await readFile(one.file, 'utf8'), await readFile(two.file, 'utf8'))
    const users = await loadUsers(two.file)
    assert.equal((await users.verify(`Basic ${btoa('ann:a long password')}`, '192.0.2.1'))?.name, 'ann')
    for (const bad of ['fifteen letters', '']) {
      await writeFile(salt, bad)
      const refused = await two.user(['add', 'bob', '--salt-file', salt], 'a long password')
      assert.equal(refused.status, 1)
      assert.match(refused.stderr, /must have 16 to 64 characters/)
    }
  })

  test('what cannot be done is refused with a sentence, and changes nothing', async (t) => {
    const { file, user } = await usersFile(t)
    await user(['add', 'ann'], 'a long password')
    const before = await readFile(file, 'utf8')
    for (const [args, reason] of [
      [['remove', 'ann'], /ann is the only user of .*; add another one first/],
      [['remove', 'bob'], /has no user bob/],
      [['password', 'bob'], /has no user bob/],
      [['add', 'a:b'], /1 to 64 characters without spaces and colons/],
    ] as const) {
      const { status, stderr } = await user(args, 'another long password')
      assert.equal(status, 1, args.join(' '))
      assert.match(stderr, reason)
    }
    assert.equal(await readFile(file, 'utf8'), before)
  })
})
