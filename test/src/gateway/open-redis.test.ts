// A gateway with its own Redis, stopped and restarted.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { startGatewayFromFile } from '../../../src/gateway/gateway.ts'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const BY_PASSWORD = `Basic ${btoa('user:open sesame')}`

test('what it keeps for users is there again: tokens, revocations, tickets and schedules', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'gateway.yaml')
  await putUser(join(folder.path, 'users.yaml'), { name: 'user', role: 'user' }, 'open sesame')
  const device = { name: 'd0', url: 'http://127.0.0.1:1', user: 'u', password: { env: 'HOME' } }
  const config = { listen: { port: 0 }, auth: { users: 'users.yaml' }, home: 'home', logLevel: 'silent' }
  await writeFile(path, JSON.stringify({ ...config, devices: [device] }))
  let gateway = await startGatewayFromFile(path)
  await using _ended = { [Symbol.asyncDispose]: () => gateway.close(0) }
  const ask = async (target: string, method = 'GET', authorization = BY_PASSWORD) => {
    const answer = await fetch(`${gateway.address}${target}`, { method, headers: { authorization } })
    return { status: answer.status, body: await answer.text() }
  }
  const told = async (target: string, method = 'GET') => JSON.parse((await ask(target, method)).body)
  const statusBy = async (token: string) => (await ask('/v1/tokens', 'GET', `Bearer ${token}`)).status

  const [kept, revoked] = [await told('/v1/tokens', 'POST'), await told('/v1/tokens', 'POST')]
  await ask(`/v1/tokens/${revoked.id}`, 'DELETE')
  const range = '/api/v1/pcap/timerange?Device=d0&TSBegin=-1h&TSEnd=now'
  const { url } = await told(`/v1/tickets?For=${encodeURIComponent(range)}`, 'POST')
  await told('/v1/schedules?Cron=0+4+*+*+*&Device=d0&TSBegin=-1h&TSEnd=now', 'POST')
  const before = { tokens: await told('/v1/tokens'), schedules: await told('/v1/schedules') }
  await gateway.close(0)
  gateway = await startGatewayFromFile(path)

  assert.deepEqual({ tokens: await told('/v1/tokens'), schedules: await told('/v1/schedules') }, before)
  assert.deepEqual([await statusBy(kept.token), await statusBy(revoked.token)], [200, 401])
  assert.equal((await fetch(`${gateway.address}${url}`)).status, 502, 'of the device, not of the ticket')
})
