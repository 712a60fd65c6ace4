import assert from 'node:assert/strict'
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import {
  findPrivateRedis,
  type PrivateRedis,
  startPrivateRedis,
} from '../../../../src/gateway/redis/redis-server.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import type { Log } from '../../../../src/shared/base/log.ts'
import { eventually } from '../../../support/eventually.ts'
import { skipWithout } from '../../../support/set-up-tools.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** A server until dispose, or until it is closed before. */
async function start(home: string): Promise<AsyncDisposable & { readonly server: PrivateRedis }> {
  const server = await startPrivateRedis(home, SILENT)
  return { server, [Symbol.asyncDispose]: () => server.close() }
}

/** A connection until dispose. */
function connect(path: string): Disposable & { readonly redis: Redis } {
  const redis = new Redis(path, { maxRetriesPerRequest: null })
  redis.on('error', () => undefined)
  return { redis, [Symbol.dispose]: () => redis.disconnect() }
}

test('runs a server that keeps its data over stop and start, and ends it on close', async () => {
  await using home = await tempFolder()
  for (const expected of [null, 'value']) {
    await using running = await start(home.path)
    const { server } = running
    using connection = connect(server.socketPath)
    const { redis } = connection
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
  await using running = await start(home.path)
  const { server } = running
  using connection = connect(server.socketPath)
  const { redis } = connection
  await redis.set('key', 'value')
  process.kill(server.pid ?? 0, 'SIGKILL')
  await once(redis, 'close')
  assert.equal(await redis.get('key'), 'value')
})

test('is found by a worker that starts before its gateway, and missed where none comes', async () => {
  await using home = await tempFolder()
  const { signal } = new AbortController()
  const found = findPrivateRedis(home.path, { log: SILENT, signal })
  await using running = await start(home.path)
  using socket = await found
  assert.equal(socket.socketPath, running.server.socketPath)
  await using other = await tempFolder()
  await assert.rejects(
    findPrivateRedis(other.path, { log: SILENT, signal, limitMs: 100 }),
    /start the gateway first/,
  )
  const stopped = AbortSignal.abort(new Error('told to stop'))
  await assert.rejects(findPrivateRedis(other.path, { log: SILENT, signal: stopped }), /told to stop/)
})

test('refuses a home that another gateway uses', async () => {
  await using home = await tempFolder()
  await using _running = await start(home.path)
  await assert.rejects(startPrivateRedis(home.path, SILENT), (error) => {
    assert.ok(error instanceof CapfleetError)
    assert.equal(error.code, 'bad-config')
    assert.match(error.message, /another gateway uses/)
    return true
  })
})

test('a home may have a path that is too long for a socket, is that of one gateway, and is found by workers', async () => {
  await using home = await tempFolder()
  const long = join(home.path, 'x'.repeat(120))
  await mkdir(long)
  await using running = await start(long)
  assert.deepEqual((await readdir(join(long, 'redis'))).sort(), ['appendonlydir', 'redis.sock'])
  await assert.rejects(startPrivateRedis(long, SILENT), /another gateway uses/)
  using socket = await findPrivateRedis(long, { log: SILENT, signal: new AbortController().signal })
  using connection = connect(socket.socketPath)
  await connection.redis.set('key', 'value')
  await running.server.close()
  await using again = await start(long)
  assert.equal(await connection.redis.get('key'), 'value', 'the worker finds it again')
  assert.ok(again.server.pid)
})

test('the server ends with a gateway that is killed', { skip: hasNoSetpriv() }, async () => {
  await using home = await tempFolder()
  const child = fork(new URL('../../../support/processes/redis-parent.ts', import.meta.url), [home.path])
  const [pid] = (await once(child, 'message')) as [number]
  assert.ok(isAlive(pid))
  child.kill('SIGKILL')
  await once(child, 'exit')
  // It is not a child process, so no event reports its end.
  await eventually(() => !isAlive(pid), { message: 'the server has ended' })
  // The next gateway can use the home.
  await using _next = await start(home.path)
})

function hasNoSetpriv(): string | false {
  const probe = spawnSync('setpriv', ['--pdeathsig', 'TERM', 'true'])
  return skipWithout(probe.status === 0, 'setpriv with --pdeathsig is not installed (util-linux)')
}
