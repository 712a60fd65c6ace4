import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gatewayEnvironment, hostedClient } from '../../../../support/processes/client-process.ts'
import { startStubGateway } from '../../../../support/servers/stub-gateway.ts'

const SCHEDULE = {
  id: 's1',
  cron: '5 * * * *',
  cronZone: 'UTC',
  nextAt: null,
  lastAt: null,
  user: 'ann',
  query: 'q',
}

test('a schedule is ordered once over a broken connection, listed and removed', async () => {
  const keys: unknown[] = []
  await using gateway = await startStubGateway({
    'POST /v1/schedules': (req, res) => {
      keys.push(req.headers['idempotency-key'])
      if (keys.length === 1) res.destroy()
      else res.writeHead(201).end(JSON.stringify(SCHEDULE))
    },
    'GET /v1/schedules': (_req, res) => void res.end(JSON.stringify({ schedules: [SCHEDULE] })),
    'DELETE /v1/schedules/s1': (_req, res) => void res.end(JSON.stringify(SCHEDULE)),
  })
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'ann', 'secret')
  const run = (...args: readonly string[]) => client.run(['export', 'schedule', ...args], { environment })
  const made = await run('create', '--cron', '5 * * * *', '--last', '1h', '-d', 'lon*', '--part-time', '15m')
  assert.deepEqual([made.status, made.stdout.toString()], [0, 's1\n'], made.stderr)
  assert.ok(keys.length === 2 && keys[0] === keys[1] && typeof keys[0] === 'string', String(keys))
  const [, asked] = gateway.asked
  assert.equal(
    asked,
    'POST /v1/schedules?Cron=5%20*%20*%20*%20*&TSBegin=-1h&TSEnd=now&Device=lon*&PartTime=15m',
  )
  assert.match((await run('list')).stdout.toString(), /^s1 +5 \* \* \* \* +UTC/m)
  assert.equal((await run('remove', 's1')).status, 0)
})
