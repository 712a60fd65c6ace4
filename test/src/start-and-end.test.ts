// Gateway and worker as processes: if Redis is away at the start or at the end, neither probes nor shutdown are
// delayed.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { stringify } from 'yaml'
import { NODE_OPTIONS } from '../../src/demo/child-program.ts'
import { putUser } from '../../src/shared/auth/edit-users-file.ts'
import { eventually } from '../support/eventually.ts'
import { httpGet } from '../support/http-get.ts'
import { RedisNode } from '../support/processes/redis-node.ts'
import { freePort } from '../support/processes/temp-proxy.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { type TempFolder, tempFolder } from '../support/temp-folder.ts'

type Program = 'gateway' | 'worker'

interface Started extends AsyncDisposable {
  readonly url: string
  readonly ready: Promise<void>
  /** Sends SIGHUP, on which a program reloads its files. */
  hangUp(): void
  /** Sends SIGTERM and resolves to the exit status. */
  end(): Promise<number | null>
  readonly said: () => string
}

/** `port`: only where its address is needed before it is ready, and prints it. */
async function start(folder: TempFolder, program: Program, redisUrl: string, port = 0): Promise<Started> {
  const users = join(folder.path, 'users.yaml')
  await putUser(users, { name: 'user', role: 'user' }, 'open sesame')
  const listen = { port }
  const config = {
    listen: program === 'gateway' ? listen : {},
    exports: program === 'worker' ? { worker: { listen } } : {},
    auth: { users },
    home: folder.path,
    redis: { url: redisUrl },
    devices: [{ name: 'd0', url: 'http://127.0.0.1:1', user: 'u', password: { env: 'HOME' } }],
  }
  const path = join(folder.path, 'gateway.yaml')
  await writeFile(path, stringify(config))
  const args = [...NODE_OPTIONS, 'src/cli.ts', program, '--config', path]
  const child = spawn(process.execPath, args, { cwd: REPOSITORY_ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.on('data', (text: Buffer) => {
    said += text.toString()
  })
  return {
    url: `http://127.0.0.1:${port}`,
    ready: readyLine(child),
    said: () => said,
    hangUp: () => void child.kill('SIGHUP'),
    end: async () => {
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      return child.exitCode
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

async function readyLine(child: ChildProcess): Promise<void> {
  if (child.stdout === null) throw new Error('a piped stdout is there')
  for await (const line of createInterface({ input: child.stdout })) if (/ ready /.test(line)) return
  throw new Error('it ended before it was ready')
}

const statusOf = async (url: string) => (await httpGet(url).catch(() => undefined))?.status

describe('Redis is unreachable', { concurrency: true }, () => {
  for (const program of ['gateway', 'worker'] as const) {
    test(`at the start: a ${program} lives, is not ready, and begins when Redis is there`, async () => {
      await using folder = await tempFolder()
      await using redis = await TempRedis.create()
      await redis.stop()
      await using started = await start(folder, program, redis.url, await freePort())
      await eventually(async () => (await statusOf(`${started.url}/livez`)) === 200, { message: 'it lives' })
      assert.equal(await statusOf(`${started.url}/readyz`), 503)
      const other = await httpGet(`${started.url}/v1/devices`)
      assert.deepEqual([other.status, other.json().code], [503, 'scheduler-unavailable'])
      assert.equal(other.headers['retry-after'], '5')
      await eventually(() => /redis\.awaited/.test(started.said()), {
        message: 'the log says what it waits for',
      })
      await redis.start()
      await started.ready
      assert.equal(await statusOf(`${started.url}/readyz`), 200)
      assert.equal(await started.end(), 0)
    })

    test(`at the start: a ${program} that is asked to end meanwhile exits cleanly, and for no other reason`, async () => {
      await using folder = await tempFolder()
      await using started = await start(folder, program, '/nonexistent/redis.sock', await freePort())
      started.ready.catch(() => undefined)
      await eventually(async () => (await statusOf(`${started.url}/readyz`)) === 503, {
        message: 'it listens',
      })
      started.hangUp()
      assert.equal(await started.end(), 0)
      assert.doesNotMatch(started.said(), /capfleet:/)
    })

    test(`at the end: a ${program} ends well and soon, and its audit is whole`, async () => {
      await using folder = await tempFolder()
      await using redis = await TempRedis.create()
      await using started = await start(folder, program, redis.url)
      await started.ready
      await redis.stop('SIGKILL')
      const startedMs = performance.now()
      assert.equal(await started.end(), 0)
      assert.ok(performance.now() - startedMs < 120_000, `${performance.now() - startedMs} ms`)
      const audit = join(folder.path, 'audit')
      const [file = ''] = (await readdir(audit)).filter((name) => name.includes(`.${program}.`))
      assert.match(await readFile(join(audit, file), 'utf8'), /"audit\.closed"[^\n]*\n$/)
    })
  }

  test('but one that may forget leases, or does not know us, is refused at once', async () => {
    await using folder = await tempFolder()
    // Both programs connect in the same way, so each meets one of them by day.
    for (const [name, settings, message, byDay] of [
      ['evicts', ['maxmemory-policy allkeys-lru'], /noeviction.*\[bad-config\]/, 'gateway'],
      ['locked', ['requirepass secret'], /redis\.password.*\[bad-config\]/, 'worker'],
    ] as const) {
      const access = { password: 'secret' }
      await using redis = await RedisNode.start({ folder: folder.path, name, settings, access })
      for (const program of process.env.CAPFLEET_LONG === '1' ? (['gateway', 'worker'] as const) : [byDay]) {
        await using started = await start(folder, program, `redis://127.0.0.1:${redis.port}`)
        await assert.rejects(started.ready)
        assert.equal(await started.end(), 1)
        assert.match(started.said(), message)
      }
    }
  })
})

test('a recorder, which re-reads no file, continues after a reload signal', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'appliance.yaml')
  await writeFile(path, 'store: store\nauth: { users: users.yaml }\nlogLevel: silent\n')
  const args = [...NODE_OPTIONS, 'src/cli.ts', 'recorder', '--config', path]
  const child = spawn(process.execPath, args, { cwd: REPOSITORY_ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
  await readyLine(child)
  child.kill('SIGHUP')
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})
