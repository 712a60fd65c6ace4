// A gateway and a worker whose user of Redis (ACL) has the documented rights, and no others.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { neededRights } from '../../../src/gateway/redis/redis-rights.ts'
import { API_BEGIN_NS, API_STEP_NS, ApiDevice } from '../../support/devices/api-device.ts'
import { eventually } from '../../support/eventually.ts'
import { httpGet } from '../../support/http-get.ts'
import { startTempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const PACKETS = 20
const PREFIX = 'fleet-7'
const RANGE = `TSBegin=${API_BEGIN_NS}&TSEnd=${API_BEGIN_NS + BigInt(PACKETS) * API_STEP_NS}&TSUnit=nanos`

test('need no more rights than the documented ones', async () => {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const server = parts.use(await TempRedis.create())
  const redis = parts.adopt(new Redis(server.url), (admin) => admin.disconnect())
  const password = 'password-of-the-redis-user'
  process.env.REDIS_USER_PASSWORD = password
  await redis.acl('SETUSER', 'capfleet', 'on', `>${password}`, 'resetchannels', ...neededRights(PREFIX))
  const device = parts.use(await ApiDevice.start('foreign', PACKETS))
  const spool = join(folder.path, 'spool')
  const gateway = parts.use(
    await startTempGateway([device], server.url, {
      redis: {
        url: server.url,
        user: 'capfleet',
        password: { env: 'REDIS_USER_PASSWORD' },
        keyPrefix: PREFIX,
      },
      exports: { spool, targets: [{ name: 'files', type: 'directory', path: join(folder.path, 'files') }] },
    }),
  )
  parts.use(await startTempWorker(gateway))
  const call = async (method: string, path: string, right: number) => {
    const answer = await httpGet(gateway.url + path, { method, headers: gateway.as.full })
    assert.equal(answer.status, right, `${path}: ${answer.body}`)
    return answer
  }
  await call('GET', `/api/v1/pcap/timerange?${RANGE}`, 200)
  await call('GET', '/v1/requests', 200)
  await call('POST', '/v1/tokens?Scopes=device:read', 201)
  const { id } = (await call('POST', `/v1/exports?${RANGE}`, 202)).json()
  const isComplete = async () => (await call('GET', `/v1/exports/${id}`, 200)).json().state === 'complete'
  await eventually(isComplete, { message: 'the export is complete' })
  await call('DELETE', `/v1/exports/${id}`, 200)
  assert.deepEqual(await redis.acl('LOG'), [], 'commands that Redis rejected')
})
