// --check rejects what a start would reject, naming the setting, and neither connects, creates nor changes anything.
import assert from 'node:assert/strict'
import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { stringify } from 'yaml'
import {
  checkApplianceConfig,
  checkGatewayConfig,
  checkRecorderConfig,
} from '../../../src/operator/check-config.ts'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { TempAuthority } from '../../support/access/temp-authority.ts'
import { hostedClient, type TempClient } from '../../support/processes/client-process.ts'
import { type TempFolder, tempFolder } from '../../support/temp-folder.ts'

describe('--check', () => {
  let folder: TempFolder
  let authority: TempAuthority
  let client: TempClient
  let gateway: Record<string, unknown>
  let appliance: Record<string, unknown>

  before(async () => {
    folder = await tempFolder()
    authority = await TempAuthority.create()
    client = await hostedClient()
    const { cert, key } = await authority.issue('gateway')
    const { ca } = authority
    await putUser(join(folder.path, 'users.yaml'), { name: 'ann', role: 'user' }, 'open sesame')
    await writeFile(join(folder.path, 'secret'), 'secret\n')
    await writeFile(join(folder.path, 'broken.pem'), 'no key')
    await mkdir(join(folder.path, 'keys'))
    await copyFile(key, join(folder.path, 'keys', 'first.pem'))
    await writeFile(join(folder.path, 'keys', 'second.pem'), 'no key')
    const access = { user: 'gateway', password: { file: 'secret' }, ca, cert, key }
    gateway = {
      listen: { host: '0.0.0.0', tls: { cert, key, clientCa: ca } },
      auth: { users: 'users.yaml' },
      redis: {
        sentinels: [{ host: 'nowhere.invalid' }],
        password: { file: 'secret' },
        sentinelPassword: { file: 'secret' },
        ca,
      },
      devices: [{ name: 'd0', url: 'https://nowhere.invalid', ...access }],
      exports: {
        targets: [
          {
            name: 's3',
            type: 's3',
            bucket: 'captures',
            endpoint: 'https://nowhere.invalid',
            region: 'none',
            accessKeyId: 'A',
            secretAccessKey: { file: 'secret' },
          },
        ],
      },
    }
    appliance = { store: 'store', auth: { users: 'users.yaml' }, listen: { tls: { cert, key } } }
  })
  after(async () => {
    await client?.[Symbol.asyncDispose]()
    await authority?.[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  async function write(document: unknown): Promise<string> {
    const path = join(folder.path, 'config.yaml')
    await writeFile(path, stringify(document))
    return path
  }

  test('finds nothing wrong where a start would only wait for others, and makes nothing', async () => {
    const path = await write(gateway)
    const files = await readdir(folder.path)
    await checkGatewayConfig(path)
    await write(appliance)
    await checkApplianceConfig(path)
    await checkRecorderConfig(path)
    assert.deepEqual(await readdir(folder.path), files)
  })

  const NOT_THERE = { file: 'nothing' }
  for (const [name, change] of [
    ['listen.tls', { listen: { tls: { cert: 'nothing', key: 'nothing' } } }],
    [
      'exports.worker.listen.tls',
      { exports: { worker: { listen: { tls: { cert: 'broken.pem', key: 'secret' } } } } },
    ],
    ['auth.users', { auth: { users: 'nothing' } }],
    ['auth.users', { auth: { users: 'broken.pem' } }],
    ['auth.tokens.keys', { auth: { users: 'users.yaml', tokens: { keys: 'nothing' } } }],
    ['auth.tokens.keys: second.pem', { auth: { users: 'users.yaml', tokens: { keys: 'keys' } } }],
    ['redis.password', { redis: { url: 'redis://x', password: NOT_THERE } }],
    ['redis.sentinelPassword', { redis: { sentinels: [{ host: 'x' }], sentinelPassword: NOT_THERE } }],
    ['redis.ca', { redis: { url: 'rediss://x', ca: 'nothing' } }],
    ['devices[0].password', { devices: [{ name: 'd0', url: 'http://x', user: 'u', password: NOT_THERE }] }],
    ['devices[0]', { devices: [{ name: 'd0', url: 'http://x', token: { file: 'secret' }, ca: 'secret' }] }],
    ['deviceDiscovery[0].token', { deviceDiscovery: [{ srv: '_a._tcp.b', token: NOT_THERE }] }],
    [
      'exports.targets[0].secretAccessKey',
      {
        exports: {
          targets: [
            {
              name: 's3',
              type: 's3',
              bucket: 'abc',
              region: 'none',
              accessKeyId: 'A',
              secretAccessKey: NOT_THERE,
            },
          ],
        },
      },
    ],
    ['downloads.waitS', { downloads: { waitS: 'long' } }],
  ] as const) {
    test(`of a gateway names ${name}: ${JSON.stringify(change)}`, async () => {
      const path = await write({ ...gateway, ...change })
      await assert.rejects(
        checkGatewayConfig(path),
        (error) =>
          error instanceof CapfleetError && error.code === 'bad-config' && error.message.includes(name),
      )
    })
  }

  test('of an appliance names users and certificate; a recorder needs neither', async () => {
    for (const [change, message] of [
      [{ auth: { users: 'nothing' } }, /auth\.users/],
      [{ listen: { tls: { cert: 'secret', key: 'secret' } } }, /listen\.tls/],
    ] as const) {
      const path = await write({ ...appliance, ...change })
      await assert.rejects(checkApplianceConfig(path), message)
      await checkRecorderConfig(path)
    }
    await assert.rejects(checkRecorderConfig(await write({ ...appliance, stroe: 'x' })), /stroe: unknown key/)
  })

  test('says so on stderr, and by its status', async () => {
    for (const [program, document] of [
      ['gateway', gateway],
      ['worker', gateway],
      ['appliance', appliance],
      ['recorder', appliance],
    ] as const) {
      const path = await write(document)
      const fine = await client.run([program, '--config', path, '--check'])
      assert.deepEqual([fine.status, fine.stdout.toString(), fine.stderr], [0, '', `${path}: OK\n`])
      await write({ ...document, typo: 1 })
      const wrong = await client.run([program, '--config', path, '--check'])
      assert.deepEqual([wrong.status, wrong.stdout.toString()], [1, ''])
      assert.match(wrong.stderr, /typo: unknown key/)
    }
  })
})
