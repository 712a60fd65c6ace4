// Recorder and appliance as two real users of one group; a third user is in another group.
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { stringify } from 'yaml'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { APPLIANCE_PASSWORD } from '../../support/suite-secrets.ts'
import { tempFolder } from '../../support/temp-folder.ts'

interface User {
  readonly uid: number
  readonly gid: number
}

const CLI = join(REPOSITORY_ROOT, 'src/cli.ts')
const GROUP = 60_101
const RECORDER: User = { uid: 60_102, gid: GROUP }
const APPLIANCE: User = { uid: 60_103, gid: GROUP }
const STRANGER: User = { uid: 60_104, gid: 60_104 }
const AUTHORIZATION = { authorization: `Basic ${btoa(`full:${APPLIANCE_PASSWORD}`)}` }

/** Why the test cannot run here; false if it can. */
function whyNot(): string | false {
  if (process.getuid?.() !== 0) return 'needs root, to be other users'
  const { status } = spawnSync(process.execPath, [CLI, '--help'], RECORDER)
  return status === 0 ? false : 'other users may not read this working copy'
}

interface Program extends AsyncDisposable {
  readonly address: string
}

/** `capfleet <args>` as this user, until dispose. The umask of a service may deny the group everything. */
async function run(user: User, ...args: readonly string[]): Promise<Program> {
  const child: ChildProcess = spawn(
    'sh',
    ['-c', 'umask 077; exec "$@"', 'sh', process.execPath, CLI, ...args],
    {
      ...user,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const ended = once(child, 'exit')
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const address = /ready (\S+)/.exec(line)?.[1]
    if (address === undefined) continue
    return {
      address,
      async [Symbol.asyncDispose]() {
        child.kill()
        await ended
      },
    }
  }
  throw new Error(`capfleet ${args[0]} did not start`)
}

test('an appliance of another user of its group commands the recorder, and a stranger does not', {
  skip: whyNot(),
}, async () => {
  await using folder = await tempFolder()
  await chmod(folder.path, 0o755)
  const store = join(folder.path, 'store')
  await mkdir(store, { mode: 0o750 })
  await chown(store, RECORDER.uid, GROUP)
  const users = join(folder.path, 'users.yaml')
  await putUser(users, { name: 'full', role: 'full' }, APPLIANCE_PASSWORD)
  await chown(users, APPLIANCE.uid, APPLIANCE.gid)
  const config = join(folder.path, 'appliance.yaml')
  await writeFile(config, stringify({ store, listen: { port: 0 }, auth: { users }, logLevel: 'warn' }))
  const file = join(folder.path, 'a.pcap')
  await writeFile(file, makePcap([makePacket(1n, 'one', 60)]))

  await using recorder = await run(RECORDER, 'recorder', '--config', config)
  assert.ok(recorder.address)
  await using appliance = await run(APPLIANCE, 'appliance', '--config', config)
  const get = (path: string): Promise<Response> =>
    fetch(`${appliance.address}${path}`, { headers: AUTHORIZATION })

  const imported = await capfleet(RECORDER, 'import', file, '--store', store)
  assert.equal(imported.status, 0, imported.stderr)
  assert.equal((await get('/api/v1/pcap/single?StreamName=a')).status, 200)
  for (const path of ['capture_start?StreamName=b', 'capture_stop']) {
    const answer = await get(`/sysmaster/${path}`)
    assert.equal(answer.status, 200, await answer.text())
  }
  for (const [name, expected] of [
    ['recorder.sock', 0o660],
    ['recorder-owner.sock', 0o600],
  ] as const) {
    const { mode, uid, gid } = await stat(join(store, name))
    assert.deepEqual([mode & 0o777, uid, gid], [expected, RECORDER.uid, GROUP], name)
  }
  // The recorder would open the file with rights that the appliance does not have.
  for (const user of [APPLIANCE, STRANGER]) {
    const refused = await capfleet(user, 'import', file, '--store', store, '--name', 'c')
    assert.equal(refused.status, 1)
    assert.match(
      refused.stderr,
      user === APPLIANCE ? /may not control the recorder .* to import; run/ : /EACCES|may not/,
    )
  }
  const deleted = await get('/pcap/del?StreamName=a')
  assert.equal(deleted.status, 200, await deleted.text())
})

function capfleet(
  user: User,
  ...args: readonly string[]
): Promise<{ status: number | null; stderr: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [CLI, ...args], user, (_error, _stdout, stderr) =>
      resolve({ status: child.exitCode, stderr }),
    )
  })
}
