// The contents of a store before its recorder started, read while the recorder already adds to it.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { StoreWriter } from '../../../../appliance/recorder/writer/store-writer.ts'
import { captureFacts } from '../../../support/packets/capture-records.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const SECOND_NS = 1_000_000_000n
const ROUNDS = Array.from({ length: 10 }, (_, round) => round + 1)

function facts(name: string, startNs: bigint) {
  const createdAt = new Date(Number(startNs / 1_000_000n)).toISOString()
  return captureFacts(name, { type: 'capture', state: 'closed', startNs, endNs: startNs + 1n, createdAt })
}

test('a store without captures held nothing', async () => {
  await using folder = await tempFolder()
  await using writer = await StoreWriter.open(`${folder.path}/store`)
  assert.equal(await writer.lastStoredAtStart(), undefined)
})

for (const round of ROUNDS)
  test(`a capture that is made while the store is read does not count as what it held (${round})`, async () => {
    await using folder = await tempFolder()
    const path = `${folder.path}/store`
    const beginNs = 1_700_000_000n * SECOND_NS
    {
      await using writer = await StoreWriter.open(path)
      assert.ok(await writer.makeCapture(facts('old_20231114_2213', beginNs)))
    }
    await using writer = await StoreWriter.open(path)
    const name = 'new_20261114_2213'
    const making = writer.makeCapture(facts(name, 2n * beginNs))
    // From the moment it appears, the reader may get to it first.
    while (!existsSync(`${path}/captures/${name}`)) await nextTurn()
    const asked = writer.lastStoredAtStart()
    assert.ok(await making)
    assert.equal(await asked, beginNs + 1n)
  })
