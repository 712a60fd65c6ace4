import assert from 'node:assert/strict'
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { CapfleetError } from '../../../src/base/error.ts'
import type { Log } from '../../../src/base/log.ts'
import { startPrivateRedis } from '../../../src/redis/redis-server.ts'
import { eventually } from '../../support/eventually.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('runs a server that keeps its data over stop and start, and ends it on close', async () => {
  await using home = await tempFolder()
  for (const expected of [null, 'value']) {
    const server = await startPrivateRedis(home.path, SILENT)
    const redis = new Redis(server.socketPath)
    assert.equal(await redis.get('key'), expected)
    await redis.set('key', 'value')
    redis.disconnect()
    const pid = server.pid ?? 0
    assert.ok(isAlive(pid))
    await server.close()
    assert.ok(!isAlive(pid))
  }
})

test('starts the server again when it is killed', async () => {
  await using home = await tempFolder()
  const server = await startPrivateRedis(home.path, SILENT)
  const redis = new Redis(server.socketPath, { maxRetriesPerRequest: null })
  redis.on('error', () => undefined)
  await redis.set('key', 'value')
  process.kill(server.pid ?? 0, 'SIGKILL')
  await once(redis, 'close')
  assert.equal(await redis.get('key'), 'value')
  redis.disconnect()
  await server.close()
})

test('refuses a home that another gateway uses', async () => {
  await using home = await tempFolder()
  const server = await startPrivateRedis(home.path, SILENT)
  await assert.rejects(startPrivateRedis(home.path, SILENT), (error) => {
    assert.ok(error instanceof CapfleetError)
    assert.equal(error.code, 'bad-config')
    assert.match(error.message, /another gateway uses/)
    return true
  })
  await server.close()
})

test('a home with a path too long for a socket works, with the socket elsewhere', async () => {
  await using home = await tempFolder()
  const long = join(home.path, 'x'.repeat(120))
  await mkdir(long)
  const server = await startPrivateRedis(long, SILENT)
  assert.ok(Buffer.byteLength(server.socketPath) <= 107)
  assert.ok((await readdir(join(long, 'redis'))).includes('appendonlydir'))
  await server.close()
})

test('the server ends with a gateway that is killed', { skip: hasNoSetpriv() }, async () => {
  await using home = await tempFolder()
  const child = fork(new URL('../../support/processes/redis-parent.ts', import.meta.url), [home.path])
  const [pid] = (await once(child, 'message')) as [number]
  assert.ok(isAlive(pid))
  child.kill('SIGKILL')
  await once(child, 'exit')
  // Not a child of ours: nothing tells us of its end.
  await eventually(() => !isAlive(pid), { limitMs: 10_000, message: 'the server has ended' })
  // The next gateway finds the home free.
  const server = await startPrivateRedis(home.path, SILENT)
  await server.close()
})

function hasNoSetpriv(): string | false {
  const probe = spawnSync('setpriv', ['--pdeathsig', 'TERM', 'true'])
  return probe.status === 0 ? false : 'setpriv with --pdeathsig is not installed'
}
