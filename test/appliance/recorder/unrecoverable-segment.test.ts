// A segment that was being written and cannot be recovered: everything else is, and its loss is reported.
import assert from 'node:assert/strict'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { isDamaged } from '../../../appliance/store/stored-capture.ts'
import { copyModel, type DamageModel, makeDamageModel } from '../../support/disks/damage-model.ts'
import { catalogueOf, readDamaged, recoverDamaged, repairStore } from '../../support/disks/damaged-copy.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const BOOT_ID = 'this-boot'
const NAME = 'live_20261120_0930'

describe('a segment that cannot be recovered', () => {
  let home: Awaited<ReturnType<typeof tempFolder>>
  let model: DamageModel
  let newest = ''
  before(async () => {
    home = await tempFolder()
    model = await makeDamageModel(home.path, BOOT_ID)
    newest =
      model.files.findLast((file) => file.startsWith(`captures/${NAME}/cap0/`) && file.endsWith('.pcap')) ??
      ''
    assert.notEqual(newest, '')
  })
  after(() => home[Symbol.asyncDispose]())

  test('because both of its headers are lost: its packets may be missing, and no others', async () => {
    const path = join(home.path, 'headers')
    await copyModel(model, path)
    for (const [file, bytes] of [
      [newest, 24],
      [newest.replace('.pcap', '.idx'), 64],
    ] as const) {
      const content = await readFile(join(path, file))
      await writeFile(join(path, file), content.fill(0, 0, bytes))
    }
    const expected = { mayLose: model.mayLose(newest, 0, Number.MAX_SAFE_INTEGER), unflushed: false }
    assert.equal((await readDamaged(path, model, expected)).damagedCaptures, 1)
    assert.ok((await recoverDamaged(path, BOOT_ID)) > 0)
    assert.equal((await readDamaged(path, model, expected)).damagedCaptures, 1)
    await repairStore(path, BOOT_ID)
    await readDamaged(path, model, expected)
  })

  test('because its index cannot be read: the rest of the capture is listed, closed and complete', async () => {
    const path = join(home.path, 'index')
    await copyModel(model, path)
    const index = join(path, newest.replace('.pcap', '.idx'))
    await rm(index)
    await mkdir(index)
    const lost = BigInt(model.mayLose(newest, 0, Number.MAX_SAFE_INTEGER).size)
    for (const state of ['active', 'closed']) {
      const listed = await catalogueOf(path).list()
      assert.equal(listed.length, model.captures.length)
      const live = listed.find(({ name }) => name === NAME)
      assert.ok(live)
      assert.deepEqual([live.state, live.packets, isDamaged(live)], [state, 300n - lost, true])
      if (state === 'active') assert.equal(await recoverDamaged(path, BOOT_ID), 1)
    }
  })
})
