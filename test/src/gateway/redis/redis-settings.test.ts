import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { isPrivate, readRedisTarget, redisSchema } from '../../../../src/gateway/redis/redis-settings.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { TempAuthority } from '../../../support/access/temp-authority.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const sentinels = [{ host: 'sentinel-0', port: 26_379 }]

for (const [settings, path, message] of [
  [{ url: 'redis://x', sentinels }, 'sentinels', /beside redis\.url/],
  [{ url: 'redis://x', sentinelPassword: { env: 'X' } }, 'sentinelPassword', /needs redis\.sentinels/],
  [{ url: 'rediss://x', cert: 'c.pem' }, 'key', /cert and key belong together/],
  [{ url: 'rediss://x', key: 'k.pem' }, 'cert', /cert and key belong together/],
  [{ url: 'redis://x', ca: 'ca.pem' }, 'ca', /rediss:\/\//],
  [{ ca: 'ca.pem' }, 'ca', /rediss:\/\//],
  [{ sentinels, cert: 'c.pem', key: 'k.pem' }, 'cert', /redis\.sentinels with redis\.ca/],
  [{ url: 'redis://:secret@x' }, 'url', /redis\.password/],
  [{ url: 'redis://user@x' }, 'url', /redis\.user/],
  [{ url: 'redis://x', user: 'capfleet' }, 'password', /beside redis\.user/],
  [{ sentinels: [{ host: 'x', port: 0 }] }, 'sentinels.0.port', /./],
] as const) {
  test(`refuses ${JSON.stringify(settings)} at ${path}`, () => {
    const { error } = redisSchema.safeParse(settings)
    const issue = error?.issues.find((one) => one.path.join('.') === path)
    assert.match(issue?.message ?? '', message)
  })
}

test('a gateway has a private Redis when neither an address nor Sentinels are set', () => {
  assert.ok(isPrivate(redisSchema.parse({})))
  assert.ok(!isPrivate(redisSchema.parse({ url: 'redis://x' })))
  assert.ok(!isPrivate(redisSchema.parse({ sentinels })))
})

test('reads secrets and certificates from the files that are named, and says which cannot be used', async () => {
  await using folder = await tempFolder()
  await using authority = await TempAuthority.create()
  const { cert, key } = await authority.issue('gateway')
  const other = await authority.issue('other')
  const path = (name: string) => join(folder.path, name)
  await writeFile(path('redis'), 'one\n')
  await writeFile(path('sentinel'), 'two\n')
  const settings = {
    sentinels,
    password: { file: 'redis' },
    sentinelPassword: { file: 'sentinel' },
    ca: authority.ca,
    cert,
    key,
  }
  const read = (change: object) =>
    readRedisTarget(redisSchema.parse({ ...settings, ...change }), path('gateway.yaml'))
  const target = await read({})
  assert.equal(target?.password?.reveal(), 'one')
  assert.equal(target?.sentinels?.password?.reveal(), 'two')
  assert.deepEqual(target?.sentinels?.addresses, sentinels)
  assert.match(target?.tls?.ca ?? '', /BEGIN CERTIFICATE/)
  for (const [change, message] of [
    [{ sentinelPassword: { file: 'nothing' } }, /redis\.sentinelPassword: cannot read/],
    [{ ca: 'redis' }, /redis: cannot use ca, cert and key/],
    [{ key: other.key }, /the key does not belong to the certificate/],
  ] as const) {
    await assert.rejects(
      read(change),
      (error) => error instanceof CapfleetError && error.code === 'bad-config' && message.test(error.message),
    )
  }
})
