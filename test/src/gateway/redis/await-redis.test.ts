// A program that starts while its Redis is slow waits, instead of ending at the first timeout.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { awaitRedis } from '../../../../src/gateway/redis/await-redis.ts'
import { NotedChanges } from '../../../support/noted-changes.ts'
import { pause } from '../../../support/pause.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const LATE_MS = 1_100

/** Passes on the answers of a Redis, late until the returned function is called. */
async function slowRedis(path: string) {
  const folder = await tempFolder()
  const url = join(folder.path, 'slow.sock')
  let lateMs = LATE_MS
  const server = createServer((client) => {
    const redis = connect(path)
    redis.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.on('error', () => redis.destroy()).on('close', () => redis.destroy())
    client.pipe(redis)
    redis.on('data', (bytes) => {
      void pause(lateMs, 'Redis answers late').then(() => client.write(bytes))
    })
  })
  server.listen(url)
  await once(server, 'listening')
  return {
    url,
    mend: () => {
      lateMs = 0
    },
    async [Symbol.asyncDispose]() {
      server.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('the wait lasts while answers are late, says so, and ends when they are prompt', async () => {
  await using redis = await TempRedis.create()
  await using slow = await slowRedis(redis.url)
  const lines: string[] = []
  const changes = new NotedChanges()
  const note = (event: string, fields: Readonly<Record<string, unknown>> = {}) => {
    lines.push(`${event} ${String(fields.message)}`)
    changes.note()
  }
  const log = { debug: note, info: note, warn: note, error: note }
  let isReady = false
  const waiting = awaitRedis(
    { url: slow.url },
    { keyPrefix: 'capfleet', log, signal: new AbortController().signal },
  ).then(() => {
    isReady = true
  })
  await changes.until(() => lines.some((line) => /^redis\.awaited its answers take \d{4,} ms$/.test(line)))
  assert.equal(isReady, false)
  slow.mend()
  await waiting
})
