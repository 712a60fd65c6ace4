// The worker's entries in Redis that all workers share.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { ExportStore } from '../../../src/gateway/export/export-store.ts'
import { storedOrder } from '../../support/exports/stored-order.ts'
import { SILENT_LOG } from '../../support/lease/lease-user.ts'
import { startTempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { startTempWorker } from '../../support/processes/temp-worker.ts'
import { tempFolder } from '../../support/temp-folder.ts'

test('after Redis was emptied exports expire, and a worker with another spool is refused', async () => {
  await using folder = await tempFolder()
  await using redis = await TempRedis.create()
  const settings = (spool: string) => ({
    // Nothing listens there, because no device is contacted.
    devices: [
      { name: 'd0', url: 'http://127.0.0.1:9', user: 'u', password: { env: 'FAKE_DEVICE_PASSWORD' } },
    ],
    exports: {
      spool: join(folder.path, spool),
      targets: [{ name: 'local', type: 'directory', path: join(folder.path, 'files') }],
    },
  })
  await using gateway = await startTempGateway([], redis.url, settings('spool'))
  await using _worker = await startTempWorker(gateway)
  const { keyPrefix } = gateway.config.redis
  await using store = new ExportStore({ redis: { url: redis.url }, keyPrefix, log: SILENT_LOG })
  const admin = new Redis(redis.url)
  await admin.flushall()
  admin.disconnect()
  const order = storedOrder({ id: randomUUID(), target: 'local' })
  await store.create(order, 10)
  await store.change(order, { state: 'complete', endedMs: 1, expiresMs: 1 })
  await redis.until(async () => (await store.find(order.id)) === undefined)
  await redis.until(async () => (await store.workers.count()) === 1)
  await using other = await startTempGateway([], redis.url, settings('other'))
  await assert.rejects(startTempWorker(other), { code: 'bad-config', message: /exports\.spool/ })
})
