/** A process clock set by a test, using libfaketime: only CLOCK_REALTIME, while the process runs. */

import { globSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { skipWithout } from '../set-up-tools.ts'

const [LIBRARY] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1')

/** Skip reason for tests, or false. */
export const WITHOUT_FAKETIME = skipWithout(
  LIBRARY !== undefined,
  'libfaketime is not installed (apt-get install libfaketime)',
)

export class FakedClock {
  readonly #path: string

  private constructor(path: string) {
    this.#path = path
  }

  /** Correct at first. */
  static async create(folder: string): Promise<FakedClock> {
    const clock = new FakedClock(join(folder, 'clock-offset'))
    await clock.set(0)
    return clock
  }

  /** Environment of a process with this clock. Times reported by the file system stay true. */
  get environment(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: LIBRARY ?? '',
      FAKETIME_TIMESTAMP_FILE: this.#path,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    }
  }

  /** Sets how many seconds the clock is ahead from now on. */
  async set(aheadS: number): Promise<void> {
    await writeFile(`${this.#path}.new`, `${aheadS < 0 ? '' : '+'}${aheadS}s\n`)
    await rename(`${this.#path}.new`, this.#path)
  }
}

const ALL_JUMPS = Object.entries({ '1 h': 3_600, '2 d': 172_800, '10 y': 315_576_000 }).flatMap(
  ([name, s]) => [
    { name: `${name} on`, jumpS: s },
    { name: `${name} back`, jumpS: -s },
  ],
)
/** In seconds: all of them at night, otherwise a small one and a large one, in both directions. */
export const CLOCK_JUMPS = ALL_JUMPS.filter(
  ({ name }) => process.env.CAPFLEET_LONG === '1' || name === '1 h back' || name === '10 y on',
)
