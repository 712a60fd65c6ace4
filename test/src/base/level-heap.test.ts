import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'

const SCRIPT = `
  const v8 = require('node:v8')
  const { setImmediate: nextTurn } = require('node:timers/promises')
  const { keepHeapLevel } = require('${REPOSITORY_ROOT}src/base/level-heap.ts')
  const youngBytes = () => v8.getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size
  let oldBytes = 0
  /** Much survives the young generation and becomes garbage in the old one. */
  async function work() {
    let passing = []
    for (let at = 0; at < 8_000_000; at++) {
      passing.push({ at })
      if (passing.length < 100_000) continue
      passing = passing.slice(50_000)
      oldBytes = Math.max(oldBytes, v8.getHeapStatistics().total_heap_size - youngBytes())
      await nextTurn()
    }
  }
  async function main() {
    const kept = Array.from({ length: 300_000 }, (_, at) => ({ at }))
    CALLS
    if (kept.length > 0) console.log(JSON.stringify({ youngMiB: youngBytes() / 2 ** 20, oldMiB: oldBytes / 2 ** 20 }))
  }
  main()`

/** How V8 comes. */
const COLLECTS_LATE = '--heap-growing-percent=0'

/** In MiB. */
interface Heap {
  readonly youngMiB: number
  readonly oldMiB: number
}

/** After `calls`, in a process of its own. */
function heapAfter(calls: string): Heap {
  const args = ['--expose-gc', '-e', SCRIPT.replace('CALLS', calls)]
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  assert.equal(stderr, '', 'V8 knows the flags')
  return JSON.parse(stdout)
}

/** The least of some runs: what else runs on the machine holds collections up, and never brings them on. */
function leastHeapAfter(calls: string): Heap {
  const runs = Array.from({ length: 3 }, () => heapAfter(calls))
  return {
    youngMiB: Math.min(...runs.map(({ youngMiB }) => youngMiB)),
    oldMiB: Math.min(...runs.map(({ oldMiB }) => oldMiB)),
  }
}

test('the heap of a server that has started grows less than that of any program', () => {
  const level = leastHeapAfter('keepHeapLevel(); await work()')
  const late = leastHeapAfter(`keepHeapLevel(); v8.setFlagsFromString('${COLLECTS_LATE}'); await work()`)
  const other = leastHeapAfter('await work()')
  assert.ok(level.youngMiB <= 32 && level.youngMiB < other.youngMiB, JSON.stringify({ level, other }))
  assert.ok(level.oldMiB < late.oldMiB, JSON.stringify({ level, late }))
})

test('a server that was idle gets as much of a young generation again as it had', () => {
  // What V8 does itself after some idle seconds.
  const shrink = `gc({ type: 'major', execution: 'sync', flavor: 'last-resort' })`
  const idle = heapAfter(`keepHeapLevel(); await work(); ${shrink}`)
  const back = heapAfter(`keepHeapLevel(); await work(); ${shrink}; await nextTurn(); await work()`)
  assert.ok(idle.youngMiB < 16, JSON.stringify(idle))
  assert.ok(back.youngMiB >= 16 && back.youngMiB <= 32, JSON.stringify(back))
})
