// The files of `npm pack`, without the rest of the repository: the commands that ask a gateway run, with any Node.js
// 24.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { type SmallFleet, startSmallFleet } from '../support/processes/small-fleet.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { USER_PASSWORD } from '../support/suite-secrets.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** The dependencies in package.json that these commands load. */
const NEEDED_PACKAGES = ['commander', 'eventsource-parser', 'lru-cache', 'yaml', 'zod']

interface Ended {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

describe('the npm package', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let home = ''
  let bin = ''

  before(async () => {
    fleet = parts.use(await startSmallFleet())
    const folder = parts.use(await tempFolder())
    home = folder.path
    bin = join(home, 'bin')
    const modules = join(home, 'node_modules')
    await mkdir(bin)
    await mkdir(join(modules, '.bin'), { recursive: true })
    await promisify(execFile)('npm', ['pack', '--pack-destination', home], { cwd: REPOSITORY_ROOT })
    const archive = (await readdir(home)).find((name) => name.endsWith('.tgz')) ?? ''
    await promisify(execFile)('tar', ['-xzf', archive], { cwd: home })
    await promisify(execFile)('mv', ['package', join(modules, 'capfleet')], { cwd: home })
    for (const name of NEEDED_PACKAGES)
      await symlink(join(REPOSITORY_ROOT, 'node_modules', name), join(modules, name))
    await symlink('../capfleet/src/capfleet', join(modules, '.bin', 'capfleet'))
    await symlink(process.execPath, join(bin, 'node'))
  })
  after(() => parts.disposeAsync())

  const run = (args: readonly string[], { path = `${bin}:/usr/bin:/bin`, input = '' } = {}): Promise<Ended> =>
    new Promise((resolve) => {
      const child = execFile(
        join(home, 'node_modules/.bin/capfleet'),
        [...args],
        { cwd: home, env: { PATH: path, XDG_CONFIG_HOME: join(home, 'config') } },
        (_error, stdout, stderr) => resolve({ status: child.exitCode, stdout, stderr }),
      )
      child.stdin?.end(input)
    })

  test('holds no TypeScript and no native code', async () => {
    const files = await readdir(join(home, 'node_modules/capfleet'), { recursive: true })
    assert.ok(files.includes('dist/src/cli.js'))
    assert.deepEqual(
      files.filter((name) => /\.(ts|node|cc|h)$/.test(name)),
      [],
    )
  })

  test('logs in, lists and downloads', async () => {
    const { version } = JSON.parse(await readFile(join(REPOSITORY_ROOT, 'package.json'), 'utf8')) as {
      readonly version: string
    }
    assert.equal((await run(['--version'])).stdout, `capfleet ${version}\n`)
    const login = await run(['login', fleet.gateway.url, '--user', 'user'], { input: `${USER_PASSWORD}\n` })
    assert.equal(login.status, 0, login.stderr)
    assert.match((await run(['devices'])).stdout, /^east .*\nwest /m)
    const got = await run(['get', 'east-first'])
    assert.equal(got.status, 0, got.stderr)
    assert.equal((await readFile(join(home, 'east-first.pcap'))).length, 1_944)
    const completed = await run(['__complete', '--', 'get', 'east-s'])
    assert.equal(completed.stdout, 'east-second\n')
  })

  test('every command that asks a gateway has its code in it', async () => {
    const { stdout } = await run(['--help'])
    const [, list = ''] = /Ask a gateway:\n([\s\S]*?)\n\n/.exec(stdout) ?? []
    const names = [...list.matchAll(/^ {2}(\w+)/gm)].map(([, name = '']) => name)
    assert.ok(names.length > 10, names.join())
    for (const name of names) assert.equal((await run([name, '--help'])).status, 0, name)
  })

  test('says in a sentence what it cannot do', async () => {
    for (const args of [['gateway', '--config', 'x'], ['import', 'x', '--store', 'y'], ['demo']]) {
      const { status, stderr } = await run(args)
      assert.equal(status, 1)
      assert.match(
        stderr,
        /^capfleet: \w+ needs the native engine \(capfleet(-gateway)?\.node\), which is not in this package; .*\n$/,
      )
    }
  })

  test('takes the Node.js beside it before that of the machine, and refuses one that is too old', async () => {
    const old = join(home, 'old')
    await mkdir(old)
    await writeFile(join(old, 'node'), '#!/bin/sh\necho v20.20.2\n')
    await chmod(join(old, 'node'), 0o755)
    const path = `${old}:/usr/bin:/bin`
    const refused = await run(['--version'], { path })
    assert.equal(refused.status, 1)
    assert.match(refused.stderr, /^capfleet: needs Node\.js 24 or newer, and finds v20\.20\.2/)
    const beside = join(home, 'node_modules/.bin/node')
    await symlink(process.execPath, beside)
    assert.match((await run(['--version'], { path })).stdout, /^capfleet /)
    await rm(beside)
  })
})
