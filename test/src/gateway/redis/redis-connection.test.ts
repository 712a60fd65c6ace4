import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { checkRedisServer, connectRedis } from '../../../../src/gateway/redis/redis-connection.ts'
import { neededRights } from '../../../../src/gateway/redis/redis-rights.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import type { Log } from '../../../../src/shared/base/log.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { TempAuthority } from '../../../support/access/temp-authority.ts'
import { GROUP, PASSWORDS, RedisNode, SentinelWorld } from '../../../support/processes/redis-node.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const PREFIX = 'capfleet'
const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

test('accepts a server that keeps every key and refuses one that may evict', async () => {
  await using server = await TempRedis.create()
  const redis = connectRedis({ url: server.url }, 'commands', SILENT)
  await checkRedisServer(redis, PREFIX)
  await redis.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await assert.rejects(checkRedisServer(redis, PREFIX), (error) => {
    assert.ok(error instanceof CapfleetError)
    assert.equal(error.code, 'bad-config')
    assert.match(error.message, /allkeys-lru.*noeviction/)
    return true
  })
  redis.disconnect()
})

test('logs in with the password that was given beside the address', async () => {
  await using server = await TempRedis.create()
  const opened = connectRedis({ url: server.url }, 'commands', SILENT)
  await opened.config('SET', 'requirepass', 'secret')
  opened.disconnect()
  const redis = connectRedis({ url: server.url, password: new Secret('secret') }, 'commands', SILENT)
  await checkRedisServer(redis, PREFIX)
  redis.disconnect()
})

test('logs in as a user of Redis, which may have fewer rights than the default one', async () => {
  await using server = await TempRedis.create()
  const opened = connectRedis({ url: server.url }, 'commands', SILENT)
  await opened.acl('SETUSER', 'capfleet', 'on', '>secret', ...neededRights(PREFIX))
  await opened.acl('SETUSER', 'default', 'off')
  opened.disconnect()
  const password = new Secret('secret')
  for (const purpose of ['commands', 'blocking', 'jobs', 'messages'] as const) {
    const redis = connectRedis({ url: server.url, user: 'capfleet', password }, purpose, SILENT)
    if (purpose === 'commands') await checkRedisServer(redis, PREFIX)
    await assert.rejects(redis.flushall(), /^ReplyError: NOPERM/)
    redis.disconnect()
  }
  const nobody = connectRedis({ url: server.url, password }, 'commands', SILENT)
  await assert.rejects(checkRedisServer(nobody, PREFIX), { code: 'bad-config' })
  nobody.disconnect()
})

test('a user of Redis that lacks a right is bad-config, and the error names the rights', async () => {
  await using server = await TempRedis.create()
  const opened = connectRedis({ url: server.url }, 'commands', SILENT)
  const password = new Secret('secret')
  const rights = neededRights(PREFIX)
  const without = (right: string) => rights.filter((other) => other !== right)
  const lacking = [...rights.filter((right) => /^[~&]/.test(right)), '+info'].map(without)
  for (const allowed of [...lacking, [...rights, '-eval'], [...rights, '-publish']]) {
    await opened.acl('SETUSER', 'capfleet', 'reset', 'on', '>secret', 'resetchannels', ...allowed)
    const redis = connectRedis({ url: server.url, user: 'capfleet', password }, 'commands', SILENT)
    await assert.rejects(
      checkRedisServer(redis, PREFIX),
      (error) =>
        error instanceof CapfleetError &&
        error.code === 'bad-config' &&
        error.message.startsWith('redis.user: user capfleet lacks rights in Redis') &&
        error.message.endsWith(`grant ${rights.join(' ')}`),
      allowed.join(' '),
    )
    redis.disconnect()
  }
  opened.disconnect()
})

test('a server that is not there is scheduler-unavailable within seconds', async () => {
  const redis = connectRedis({ url: '/nonexistent/redis.sock' }, 'commands', SILENT)
  await assert.rejects(
    checkRedisServer(redis, PREFIX),
    (error) => error instanceof CapfleetError && error.code === 'scheduler-unavailable',
  )
  redis.disconnect()
})

test('a password that Redis rejects is bad-config: waiting does not fix it', async () => {
  await using server = await TempRedis.create()
  const opened = connectRedis({ url: server.url }, 'commands', SILENT)
  await opened.config('SET', 'requirepass', 'secret')
  opened.disconnect()
  for (const password of [undefined, new Secret('wrong')]) {
    const redis = connectRedis({ url: server.url, password }, 'commands', SILENT)
    await assert.rejects(
      checkRedisServer(redis, PREFIX),
      (error) =>
        error instanceof CapfleetError &&
        error.code === 'bad-config' &&
        /redis\.password.*(NOAUTH|WRONGPASS)/.test(error.message),
    )
    redis.disconnect()
  }
})

/** The same for connectRedis() and for the test's own connection. */
async function readPem(paths: { readonly ca: string; readonly cert: string; readonly key: string }) {
  const [ca, cert, key] = [await read(paths.ca), await read(paths.cert), await read(paths.key)]
  return { tls: { ca, cert, key: new Secret(key) }, access: { tls: { ca, cert, key } } }
}

const read = (path: string) => readFile(path, 'utf8')

test('speaks TLS with a server whose certificate is from its own CA, and presents its own', async () => {
  await using folder = await tempFolder()
  await using authority = await TempAuthority.create()
  const [theirs, ours] = [await authority.issue('redis'), await authority.issue('gateway')]
  const { access, tls } = await readPem({ ...ours, ca: authority.ca })
  const { ca } = tls
  const files = { ...theirs, ca: authority.ca }
  await using server = await RedisNode.start({
    folder: folder.path,
    name: 'redis',
    settings: [],
    tls: files,
    access,
  })
  const url = `rediss://127.0.0.1:${server.port}`
  const redis = connectRedis({ url, tls }, 'commands', SILENT)
  await checkRedisServer(redis, PREFIX)
  redis.disconnect()
  for (const wrong of [undefined, { ca }]) {
    const refused = connectRedis({ url, tls: wrong }, 'commands', SILENT)
    await assert.rejects(
      checkRedisServer(refused, PREFIX),
      (error) => error instanceof CapfleetError && error.code === 'scheduler-unavailable',
    )
    refused.disconnect()
  }
})

test('asks Sentinels over TLS for the primary, and finds the next one after a failover', async () => {
  await using folder = await tempFolder()
  await using authority = await TempAuthority.create()
  const files = { ...(await authority.issue('redis')), ca: authority.ca }
  const { access, tls } = await readPem(files)
  await using world = await SentinelWorld.start({ folder: folder.path, tls: files, access })
  const target = {
    sentinels: { addresses: world.addresses, name: GROUP, password: new Secret(PASSWORDS.sentinel) },
    password: new Secret(PASSWORDS.redis),
    tls,
  }
  const commands = connectRedis(target, 'commands', SILENT)
  const jobs = connectRedis(target, 'jobs', SILENT)
  // As BullMQ does for its blocking connection.
  const blocking = jobs.duplicate()
  blocking.on('error', () => undefined)
  await checkRedisServer(commands, PREFIX)
  await commands.set('key', 'before')
  await commands.wait(1, 1_000)
  const waiting = blocking.blpop('list', 0)
  await world.primary.signal('SIGKILL')
  await jobs.rpush('list', 'item')
  assert.deepEqual(await waiting, ['list', 'item'])
  assert.equal(await world.primaryPort(), world.replica.port)
  assert.equal(await commands.get('key'), 'before')
  for (const redis of [commands, jobs, blocking]) redis.disconnect()
})
