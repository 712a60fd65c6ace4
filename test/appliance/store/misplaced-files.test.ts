// Files of a store that somebody has moved, copied or restored: nothing disappears without a report.
import assert from 'node:assert/strict'
import { copyFile, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { verifyStore } from '../../../appliance/recorder/verify-store.ts'
import { SegmentLogWriter } from '../../../appliance/recorder/writer/segment-log-writer.ts'
import { StoreWriter } from '../../../appliance/recorder/writer/store-writer.ts'
import { decodeRecord, encodeRecord } from '../../../appliance/store/capture-record.ts'
import { readCapture } from '../../../appliance/store/read-capture.ts'
import { SegmentTable } from '../../../appliance/store/segment-table.ts'
import { entriesOf } from '../../../appliance/store/stored-capture.ts'
import { LogEntryKind } from '../../../native/segment-entry.ts'
import { copyModel, type DamageModel, makeDamageModel, textOf } from '../../support/disks/damage-model.ts'
import { catalogueOf, readDamaged, recoverDamaged } from '../../support/disks/damaged-copy.ts'
import { makeOld } from '../../support/disks/old-store.ts'
import { storedCaptureOf } from '../../support/disks/store-captures.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const BOOT_ID = 'this-boot'
const SOUND = { lost: 0, corruptBlocks: 0, damagedCaptures: 0 }
const NOTHING_LOST = { mayLose: new Set<string>(), unflushed: false }

describe('a store in which files were misplaced', () => {
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

  const folderOf = (path: string, name: string) => join(path, 'captures', name)

  /** The damage is listed, a recorder reports and repairs it, and no packet is missing at any time. */
  async function assertReported(path: string): Promise<void> {
    assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), { ...SOUND, damagedCaptures: 1 })
    assert.ok((await recoverDamaged(path, BOOT_ID)) > 0)
    assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
    assert.equal(await recoverDamaged(path, BOOT_ID), 0, 'nothing is left to do')
  }

  test('the copy of the record is that of another capture, with a higher revision', async () => {
    const path = await copy()
    const other = decodeRecord(await readFile(join(folderOf(path, 'three'), 'capture.json'), 'utf8'))
    await writeFile(
      join(folderOf(path, 'one'), 'capture.copy.json'),
      encodeRecord({ ...other, revision: other.revision + 5 }),
    )
    await assertReported(path)
  })

  test('both copies of the record are those of another capture', async () => {
    const path = await copy()
    for (const file of ['capture.json', 'capture.copy.json'])
      await copyFile(join(folderOf(path, 'three'), file), join(folderOf(path, 'one'), file))
    await assertReported(path)
  })

  test('the folder of a capture was renamed', async () => {
    const path = await copy()
    await rename(folderOf(path, 'one'), folderOf(path, 'renamed'))
    const damaged = (await catalogueOf(path).list()).filter(({ problems }) => problems.length > 0)
    assert.deepEqual(
      damaged.map(({ name, packets }) => [name, packets]),
      [['renamed', 220n]],
    )
    assert.equal(await recoverDamaged(path, BOOT_ID), 2)
    const { packets, problems } = await catalogueOf(path).find('renamed')
    assert.deepEqual([packets, problems], [220n, []])
  })

  test('a log that is a folder is moved aside', async () => {
    const path = await copy()
    const log = join(folderOf(path, 'one'), 'segments.log')
    await rm(log)
    await mkdir(log)
    await assertReported(path)
  })

  test('the record of format 1 was restored from a backup that is older than the log', async () => {
    const path = await copy()
    await makeOld(path)
    const record = join(folderOf(path, 'one'), 'capture.json')
    const backup = JSON.parse(await readFile(record, 'utf8'))
    await recoverDamaged(path, BOOT_ID)
    assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
    const [stream] = backup.streams
    const [first] = stream.segments
    const older = {
      ...backup,
      packets: first.packets,
      bytes: first.bytes,
      streams: [{ ...stream, segments: [first] }],
    }
    await writeFile(record, JSON.stringify(older))
    await assertReported(path)
  })

  test('an interrupted upgrade is no damage', async () => {
    const path = await copy()
    await makeOld(path)
    const record = join(folderOf(path, 'one'), 'capture.json')
    const old = await readFile(record)
    await recoverDamaged(path, BOOT_ID)
    await writeFile(record, old)
    assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
    assert.equal(await recoverDamaged(path, BOOT_ID), 0)
    const read = await readCapture(folderOf(path, 'one'), 'one', { isWritten: false })
    assert.deepEqual([read?.format, read?.isSound], [2, true])
  })

  for (const place of ['cap7', 'cap0/00001'])
    test(`a file named ${place} in an active capture is moved aside`, async () => {
      const path = await copy()
      const file = join(folderOf(path, 'live_20261120_0930'), place)
      await writeFile(file, 'x')
      assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
      assert.equal(await recoverDamaged(path, BOOT_ID), 1)
      await assert.rejects(readFile(file), { code: 'ENOENT' })
      assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
    })

  test('segments that the log of a capture does not list are found and added by a repair', async () => {
    const path = await copy()
    const { table } = await storedCaptureOf(path, 'one')
    const [first, second] = [...(table.ports[0] === undefined ? [] : entriesOf(table.ports[0]))]
    assert.ok(first && second)
    const shorter = new SegmentTable()
    shorter.apply(first)
    shorter.apply({ ...first, kind: LogEntryKind.closed, number: 0, packets: 0n, bytes: 0n })
    await SegmentLogWriter.create(join(folderOf(path, 'one'), 'segments.log'), shorter)
    const listed = await storedCaptureOf(path, 'one')
    assert.deepEqual([listed.packets, listed.problems], [first.packets, []])
    for (const repair of [false, true]) {
      await using writer = await StoreWriter.open(path)
      const { findings } = await verifyStore(writer, { repair }, {})
      const found = findings.filter(({ kind }) => kind === 'segment-unlisted')
      assert.equal(found.length, table.segments - 1)
      assert.deepEqual([found[0]?.packets, found[0]?.isRepaired], [second.packets, repair])
    }
    assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
  })

  test('a folder that cannot be listed is a damaged capture with packets of any time, until it can', async () => {
    const path = await copy()
    const [folder, aside] = [folderOf(path, 'one'), join(path, 'one')]
    const mayLose = new Set(model.captures.find(({ name }) => name === 'one')?.packets.map(textOf))
    await rename(folder, aside)
    // Root may read everything, except what ends nowhere.
    await symlink('one', folder)
    const catalogue = catalogueOf(path)
    const seen = await readDamaged(path, model, { mayLose, unflushed: false }, catalogue)
    assert.deepEqual([seen.lost, seen.damagedCaptures], [mayLose.size, 1])
    assert.ok((await recoverDamaged(path, BOOT_ID)) > 0)
    await rm(folder)
    await rename(aside, folder)
    assert.deepEqual(await readDamaged(path, model, NOTHING_LOST, catalogue), SOUND)
  })
})

test('a store whose creation was interrupted before store.json had contents is created', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'store')
  await mkdir(join(path, 'captures'), { recursive: true })
  await writeFile(join(path, 'store.json'), '')
  await using writer = await StoreWriter.open(path)
  await writer.load()
  assert.equal((await readFile(join(path, 'store.json'), 'utf8')).trim(), '{"format":2}')
})
