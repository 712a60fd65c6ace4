import assert from 'node:assert/strict'
import { test } from 'node:test'
import { publishExports, publishRoom } from '../../../../src/gateway/export/export-metrics.ts'
import type { ExportState } from '../../../../src/gateway/export/export-record.ts'
import { Spool } from '../../../../src/gateway/export/spool.ts'
import type { ExportTarget } from '../../../../src/gateway/export/target/export-target.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

/** The lines of /metrics about exports. */
async function linesOf(metrics: Metrics): Promise<readonly string[]> {
  return [...(await metrics.text()).matchAll(/^capfleet_(export\w*(?:\{.*\})? .*)$/gm)].map(
    ([, line = '']) => line,
  )
}

test('exports are reported by state, with the oldest of each; while Redis is unreachable the last figures stay', async () => {
  const metrics = new Metrics()
  let live: { readonly state: ExportState; readonly createdMs: number }[] = [
    { state: 'queued', createdMs: 7_000 },
    { state: 'queued', createdMs: 5_000 },
    { state: 'running', createdMs: 9_000 },
  ]
  let isReachable = true
  const store = { liveStates: async () => live, workers: { count: async () => 3 } }
  publishExports(store, () => isReachable, metrics)
  const told = [
    'exports{state="queued"} 2',
    'exports{state="running"} 1',
    'exports{state="paused"} 0',
    'exports_oldest_timestamp_seconds{state="queued"} 5',
    'exports_oldest_timestamp_seconds{state="running"} 9',
    'export_workers 3',
  ]
  assert.deepEqual(await linesOf(metrics), told)
  live = []
  isReachable = false
  assert.deepEqual(await linesOf(metrics), told)
  isReachable = true
  store.workers.count = () => Promise.reject(new Error('Redis is away'))
  assert.deepEqual(await linesOf(metrics), told, 'one that just went away')
})

test('a place that never answers has no figure, keeps no other metric waiting, and is asked once', async () => {
  await using folder = await tempFolder()
  const metrics = new Metrics()
  let asked = 0
  const answer = Promise.withResolvers<bigint>()
  const target = {
    name: 'files',
    freeBytes: () => {
      asked += 1
      return answer.promise
    },
  }
  const targets = new Map([['files', target as unknown as ExportTarget]])
  publishRoom({ spool: new Spool(folder.path), targets }, metrics)
  for (let at = 0; at < 2; at++) assert.deepEqual(await linesOf(metrics), [])
  assert.equal(asked, 1)
  answer.resolve(5n)
  await answer.promise
  const [spool, files] = await linesOf(metrics)
  assert.match(spool ?? '', /^export_free_bytes\{place="spool"\} \d+/)
  assert.equal(files, 'export_free_bytes{place="target:files"} 5')
})
