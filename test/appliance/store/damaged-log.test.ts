// A segment log that is damaged together with a segment: losses are reported, and nothing that is lost passes as
// removed.
import assert from 'node:assert/strict'
import { mkdir, readFile, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { copyModel, type DamageModel, makeDamageModel } from '../../support/disks/damage-model.ts'
import { readDamaged, recoverDamaged, repairStore } from '../../support/disks/damaged-copy.ts'
import { flipBytes } from '../../support/disks/flip-bytes.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const BOOT_ID = 'this-boot'
const SOUND = { lost: 0, corruptBlocks: 0, damagedCaptures: 0 }
const LOG_ENTRY_BYTES = 64

describe('a damaged log of segments', () => {
  let home: Awaited<ReturnType<typeof tempFolder>>
  let model: DamageModel
  let copies = 0
  before(async () => {
    home = await tempFolder()
    model = await makeDamageModel(home.path, BOOT_ID)
  })
  after(() => home[Symbol.asyncDispose]())

  async function copy(): Promise<string> {
    const path = join(home.path, `copy-${copies++}`)
    await copyModel(model, path)
    return path
  }

  const logOf = (path: string, name: string) => join(path, 'captures', name, 'segments.log')
  const NOTHING_LOST = { mayLose: new Set<string>(), unflushed: false }

  test('of which the header alone is damaged says all that it said', async () => {
    const path = await copy()
    for (const { name } of model.captures) await flipBytes(logOf(path, name), 0, 9, 60)
    const { lost, corruptBlocks } = await readDamaged(path, model, NOTHING_LOST)
    assert.deepEqual([lost, corruptBlocks], [0, 0])
    assert.equal(await recoverDamaged(path, BOOT_ID), model.captures.length, 'each is reported')
    assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
    assert.equal(await recoverDamaged(path, BOOT_ID), 0, 'nothing is left to do')
  })

  test('whose last entry is damaged, which recorded a loss, reports nothing as complete', async () => {
    const path = await copy()
    const segment = 'captures/one/cap0/00000/00000001.pcap'
    const [first = 0] = model.offsetsOf(segment)
    await flipBytes(join(path, segment), first + 40)
    await repairStore(path, BOOT_ID)
    const log = logOf(path, 'one')
    const bytes = await readFile(log)
    const last = bytes.findLastIndex((byte) => byte !== 0)
    await flipBytes(log, last)
    const mayLose = model.mayLose(segment, first, first + 1)
    for (const reported of [1, 0]) {
      const { lost, damagedCaptures } = await readDamaged(path, model, { mayLose, unflushed: false })
      assert.deepEqual([lost, damagedCaptures], [mayLose.size, 1])
      assert.equal(await recoverDamaged(path, BOOT_ID), reported)
    }
  })

  const LOGS: Readonly<Record<string, (log: string) => Promise<void>>> = {
    'with a damaged header': (log) => flipBytes(log, 12),
    'with a damaged entry': (log) => flipBytes(log, LOG_ENTRY_BYTES + 20),
    'that is missing': (log) => rm(log),
    'that is empty': (log) => truncate(log, 0),
    'that cannot be read': async (log) => {
      await rm(log)
      await mkdir(log)
    },
  }
  const LOSSES: Readonly<Record<string, (segment: string) => Promise<void>>> = {
    'the packets of its first segment are missing': (segment) => rm(`${segment}.pcap`),
    'its first segment ends behind its header': (segment) => truncate(`${segment}.pcap`, 24),
  }
  for (const [which, damage] of Object.entries(LOGS)) {
    for (const [what, lose] of Object.entries(LOSSES))
      test(`${which}: ${what}`, async () => {
        const path = await copy()
        const folder = 'captures/one/cap0/00000'
        await damage(logOf(path, 'one'))
        await lose(join(path, folder, '00000001'))
        const mayLose = model.mayLose(`${folder}/00000001.pcap`, 0, Number.MAX_SAFE_INTEGER)
        const seen = await readDamaged(path, model, { mayLose, unflushed: false }).catch((error: unknown) => {
          // The log has every entry: a download is rejected until the recorder has checked the segment.
          assert.match(String(error), /00000001\.pcap has been removed/)
          return { lost: mayLose.size, damagedCaptures: 1 }
        })
        assert.deepEqual([seen.lost, seen.damagedCaptures], [mayLose.size, 1])
        assert.ok((await recoverDamaged(path, BOOT_ID)) > 0)
        await repairStore(path, BOOT_ID)
        const { lost, damagedCaptures } = await readDamaged(path, model, { mayLose, unflushed: false })
        assert.deepEqual([lost, damagedCaptures], [mayLose.size, 1])
      })

    test(`${which}: all blocks of a segment are marked, and come back when they are right again`, async () => {
      const path = await copy()
      const segment = 'captures/one/cap0/00000/00000001.pcap'
      const mayLose = model.mayLose(segment, 0, Number.MAX_SAFE_INTEGER)
      const places = model.offsetsOf(segment).map((offset) => offset + 40)
      await flipBytes(join(path, segment), ...places)
      await repairStore(path, BOOT_ID)
      await damage(logOf(path, 'one'))
      const seen = await readDamaged(path, model, { mayLose, unflushed: false })
      assert.deepEqual([seen.lost, seen.damagedCaptures], [mayLose.size, 1])
      await recoverDamaged(path, BOOT_ID)
      await readDamaged(path, model, { mayLose, unflushed: false })
      await flipBytes(join(path, segment), ...places)
      await repairStore(path, BOOT_ID)
      assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
    })
  }
})
