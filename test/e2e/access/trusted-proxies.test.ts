// If a proxy is trusted, logins and the audit distinguish the users behind it.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { auditEntries } from '../../support/access/temp-audit.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

/** This address is never contacted. */
const device = {
  config: {
    name: 'east',
    url: 'http://127.0.0.1:9',
    user: 'full',
    password: { env: 'FAKE_DEVICE_PASSWORD' },
  },
  password: 'nobody asks',
}

describe('a gateway behind a trusted proxy', () => {
  let redis: TempRedis
  let gateway: TempGateway
  before(async () => {
    redis = await TempRedis.create()
    gateway = await startTempGateway([device], redis.url, {
      listen: { port: 0, trustedProxies: ['127.0.0.0/8'], hstsMaxAgeS: 31_536_000 },
    })
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await redis[Symbol.asyncDispose]()
  })

  const loginFrom = async (address: string, headers: Readonly<Record<string, string>>) => {
    const url = `${gateway.url}/v1/devices`
    return (await fetch(url, { headers: { ...headers, 'x-forwarded-for': address } })).status
  }
  const wrong = { authorization: `Basic ${btoa('viewer:a wrong password')}` }

  test('delays callers with too many wrong logins, and no one else', async () => {
    const statuses: number[] = []
    for (let tries = 0; tries < 6; tries++) statuses.push(await loginFrom('198.51.100.1', wrong))
    assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429])
    assert.equal(await loginFrom('198.51.100.2', gateway.as.viewer), 200)
  })

  test('tells browsers that use TLS to the proxy to keep using TLS', async () => {
    const told = async (proto: string) => {
      const { headers } = await fetch(`${gateway.url}/livez`, { headers: { 'x-forwarded-proto': proto } })
      return headers.get('strict-transport-security')
    }
    assert.deepEqual([await told('https'), await told('http')], ['max-age=31536000', null])
  })

  test('names the address of the user in the audit', async () => {
    await loginFrom('198.51.100.3', wrong)
    const entries = await auditEntries(join(gateway.config.home, 'audit'))
    const failed = entries.filter(({ event }) => event === 'login.failed').map(({ address }) => address)
    assert.deepEqual([failed[0], failed.at(-1)], ['198.51.100.1', '198.51.100.3'])
  })
})
