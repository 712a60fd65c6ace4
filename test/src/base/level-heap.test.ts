import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'

/** MiB of the young and the old generation after much has survived the one and became garbage in the other. */
function heapAfterWork(call: string): { readonly youngMiB: number; readonly oldMiB: number } {
  const script = `
    const v8 = require('node:v8')
    const { keepHeapLevel } = require('${REPOSITORY_ROOT}src/base/level-heap.ts')
    const kept = Array.from({ length: 300_000 }, (_, at) => ({ at }))
    ${call}
    const youngBytes = () => v8.getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size
    let oldBytes = 0
    let passing = []
    for (let at = 0; at < 8_000_000; at++) {
      passing.push({ at })
      if (passing.length < 100_000) continue
      passing = passing.slice(50_000)
      oldBytes = Math.max(oldBytes, v8.getHeapStatistics().total_heap_size - youngBytes())
    }
    if (kept.length > 0) console.log(JSON.stringify({ youngMiB: youngBytes() / 2 ** 20, oldMiB: oldBytes / 2 ** 20 }))`
  const { stdout, stderr, status } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.equal(stderr, '', 'V8 knows the flags')
  return JSON.parse(stdout)
}

test('the heap of a server that has started grows less than that of any program', () => {
  const level = heapAfterWork('keepHeapLevel()')
  const other = heapAfterWork('')
  assert.ok(level.youngMiB <= 32 && level.youngMiB < other.youngMiB, JSON.stringify({ level, other }))
  assert.ok(level.oldMiB < other.oldMiB, JSON.stringify({ level, other }))
})
