// At its end, the suite searches the output of everything it started for the suite's passwords
// (test/support/suite-secrets.ts). Here a password is left in each kind of place, and the search finds it.
import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import {
  APPLIANCE_PASSWORD,
  DEVICE_PASSWORD,
  refuseSecretsBelow,
  refuseSecretsInMetrics,
  refuseSecretsOnCommandLine,
  searchedLog,
  USER_PASSWORD,
} from '../../support/suite-secrets.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const basic = (user: string, password: string) => btoa(`${user}:${password}`)

describe('the search for secrets', () => {
  const leaks = [
    ['as it is', USER_PASSWORD],
    ['of a user of one letter, in base64', basic('u', USER_PASSWORD)],
    ['of a user of two letters, in base64', basic('us', APPLIANCE_PASSWORD)],
    ['of a user of three letters, in base64', basic('use', DEVICE_PASSWORD)],
  ] as const
  for (const [what, text] of leaks) {
    test(`finds a password ${what} in a folder that goes`, async () => {
      const folder = await tempFolder()
      await mkdir(join(folder.path, 'deep'))
      await writeFile(join(folder.path, 'deep', 'gateway.log'), `{"event":"x","detail":"${text}"}\n`)
      await assert.rejects(async () => folder[Symbol.asyncDispose](), /gateway\.log/)
      await rm(folder.path, { recursive: true })
    })
  }

  test('finds one in what was stored in Redis', async () => {
    const redis = await TempRedis.create()
    const client = new Redis(redis.url)
    await client.set('key', `before ${DEVICE_PASSWORD}`)
    await client.del('key')
    client.disconnect()
    await assert.rejects(async () => redis[Symbol.asyncDispose](), /appendonlydir/)
    await rm(dirname(redis.url), { recursive: true })
  })

  test('finds one in a log, unless it is taken out of what is written', () => {
    const log = searchedLog()
    log.info('fine', { detail: `Basic ${basic('user', USER_PASSWORD)}`, size: 2n ** 60n })
    log.refuseSecrets()
    log.warn('leak', { err: new Error(`refused: ${USER_PASSWORD}`) })
    assert.throws(() => log.refuseSecrets(), /leak/)
  })

  test('finds one in metrics and on a command line', async () => {
    const server = createServer((_req, res) => res.end(`capfleet_x{user="${USER_PASSWORD}"} 1\n`))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { readonly port: number }
    await assert.rejects(refuseSecretsInMetrics(`http://127.0.0.1:${port}`), /metrics/)
    server.close()
    server.closeAllConnections()
    const { title } = process
    process.title = USER_PASSWORD
    await assert.rejects(refuseSecretsOnCommandLine(process.pid), /command line/)
    process.title = title
  })

  test('leaves out what is there to hold one', async () => {
    await using folder = await tempFolder()
    await writeFile(join(folder.path, 'password'), `${DEVICE_PASSWORD}\n`)
    await writeFile(join(folder.path, 'netrc'), `machine gateway login user password ${USER_PASSWORD}\n`)
    await writeFile(join(folder.path, 'gateway.log'), 'nothing\n')
    assert.equal(await refuseSecretsBelow(folder.path), 'nothing\n'.length)
  })
})
