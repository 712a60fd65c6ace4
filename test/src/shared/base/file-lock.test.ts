import assert from 'node:assert/strict'
import { unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { lockFile } from '../../../../src/shared/base/file-lock.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

test('one holder at a time, also when each removes the file', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'lock')
  let holder: number | undefined
  let turns = 0
  const takeTurns = async (me: number) => {
    while (turns < 12) {
      using lock = await lockFile(path)
      if (lock === undefined) continue
      assert.equal(holder, undefined)
      holder = me
      turns += 1
      await setImmediate()
      assert.equal(holder, me)
      holder = undefined
      unlinkSync(path)
    }
  }
  await Promise.all([1, 2, 3].map(takeTurns))
})
