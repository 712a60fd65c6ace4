// The chart's Redis, started as its pod starts it: with the password of its Secret, an append-only file, and no
// eviction.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { connectRedis } from '../../src/gateway/redis/redis-connection.ts'
import { createLog } from '../../src/shared/base/log.ts'
import { Secret } from '../../src/shared/base/secret.ts'
import { eventually } from '../support/eventually.ts'
import { type Manifest, render, WITHOUT_HELM } from '../support/helm/chart.ts'
import { freePort } from '../support/processes/temp-proxy.ts'
import { tempFolder } from '../support/temp-folder.ts'

interface StatefulSet extends Manifest {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly { readonly command: string[] }[] } }
  }
}

/** A password with characters that are special in the shell and in redis.conf. */
const PASSWORD = 'a"b\\c d$e\'f#g'

test('Redis starts with the password of its Secret, and keeps its data', {
  skip: WITHOUT_HELM,
}, async () => {
  await using folder = await tempFolder()
  const { program, args, port } = await preparedRedis(folder.path, PASSWORD)
  const server = spawn(program, args, { stdio: 'ignore' })
  const ended = once(server, 'exit')
  const redis = connectRedis(
    { url: `redis://127.0.0.1:${port}/0`, password: new Secret(PASSWORD) },
    'blocking',
    createLog('test', 'silent'),
  )
  try {
    assert.equal(await redis.set('key', 'value'), 'OK')
    assert.deepEqual(await redis.config('GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction'])
    assert.deepEqual(await redis.config('GET', 'maxclients'), ['maxclients', '77'])
    await eventually(() => existsSync(join(folder.path, 'appendonlydir')), {
      message: 'there is an append-only file',
    })
    const stranger = new Redis(port, '127.0.0.1', { lazyConnect: true })
    stranger.on('error', () => undefined)
    await assert.rejects(stranger.ping(), /NOAUTH/)
    stranger.disconnect()
  } finally {
    redis.disconnect()
    server.kill()
    await ended
  }
})

test('Redis does not start without a password', { skip: WITHOUT_HELM }, async () => {
  for (const lost of ['etc/secret/password', 'etc/redis.conf']) {
    await using folder = await tempFolder()
    const { program, args } = await preparedRedis(folder.path, PASSWORD)
    await rm(join(folder.path, lost))
    const server = spawn(program, args, { stdio: 'ignore' })
    const [status] = await once(server, 'exit')
    assert.notEqual(status, 0, lost)
  }
  await using folder = await tempFolder()
  const { program, args } = await preparedRedis(folder.path, '')
  const [status] = await once(spawn(program, args, { stdio: 'ignore' }), 'exit')
  assert.equal(status, 1, 'an empty password')
})

/** The pod's command, with the folders of its container below `folder`. */
async function preparedRedis(folder: string, password: string) {
  const manifests = await render({ set: ['redis.extraConfig=maxclients 77'] })
  const { spec } = manifests.find(({ kind }) => kind === 'StatefulSet') as StatefulSet
  const [program = '', ...args] = spec.template.spec.containers[0]?.command ?? []
  const conf = manifests.find(({ data }) => data?.['redis.conf'])?.data?.['redis.conf'] ?? ''
  const port = await freePort()
  const here = (text: string) =>
    text
      .replaceAll(/\/(etc|run)\/redis/g, join(folder, '$1'))
      .replaceAll('/data', folder)
      .replace('port 6379', `port ${port}`)
  for (const name of ['etc/secret', 'run']) await mkdir(join(folder, name), { recursive: true })
  await writeFile(join(folder, 'etc', 'redis.conf'), here(conf))
  await writeFile(join(folder, 'etc', 'secret', 'password'), password)
  return { program, args: args.map(here), port }
}
