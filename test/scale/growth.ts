/**
 * `npm run growth -- [--segments 1000,10000,100000] [--captures 1,20000] [--root CHECKOUT] [--folder /dev/shm]`
 * measures the costs of a store with this many segments, in one capture or spread over many, closed and active: the
 * time until the recorder has resumed its capture, its idle processor time, removals per second, the list, one second
 * of the time range, the first byte of the whole range, and the memory of both programs. Recorder and appliance are
 * those of this checkout or of --root, each a real process; a --root of format 1 gets a store of format 1. Prints a
 * line for each store. Needs some 2 GB in the folder.
 */
import { parseArgs } from 'node:util'
import { runProgram } from '../../src/shared/base/program.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { measureGrowth } from './growth-measure.ts'
import { makeGrownStore } from './growth-store.ts'

const { values } = parseArgs({
  options: {
    segments: { type: 'string', default: '1000,10000,100000' },
    captures: { type: 'string', default: '1,20000' },
    root: { type: 'string', default: REPOSITORY_ROOT },
    folder: { type: 'string', default: '/dev/shm' },
    old: { type: 'boolean', default: false },
  },
})

await runProgram(async (signal) => {
  for (const segments of numbersOf(values.segments)) {
    for (const captures of numbersOf(values.captures)) {
      // A capture has at least one segment.
      if (captures > segments) continue
      for (const state of ['closed', 'active'] as const) {
        signal.throwIfAborted()
        await using store = await makeGrownStore(values.folder, {
          segments,
          captures,
          state,
          isOld: values.old,
        })
        const found = await measureGrowth(values.root, store)
        process.stdout.write(`${JSON.stringify({ segments, captures, state, ...found })}\n`)
      }
    }
  }
})

function numbersOf(list: string): number[] {
  const numbers = list.split(',').map(Number)
  if (numbers.every((number) => Number.isInteger(number) && number > 0)) return numbers
  process.stderr.write(`growth: "${list}" is no list of numbers of segments or captures\n`)
  process.exit(2)
}
