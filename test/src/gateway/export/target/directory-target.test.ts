import assert from 'node:assert/strict'
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { DirectoryTarget } from '../../../../../src/gateway/export/target/directory-target.ts'
import { mountSmallDisk, type SmallDisk } from '../../../../support/disks/small-disk.ts'
import {
  failsWith,
  keep,
  kept,
  type TargetStage,
  testTargetContract,
} from '../../../../support/exports/export-target-contract.ts'
import { madeFile } from '../../../../support/exports/made-file.ts'
import { tempFolder } from '../../../../support/temp-folder.ts'

const MIB = 1_048_576
const DISK_BYTES = 8 * MIB

const disk = await mountSmallDisk(DISK_BYTES)
const WITHOUT_DISK = typeof disk === 'string' && process.env.CI !== 'true' ? disk : false
after(async () => {
  if (typeof disk !== 'string') await disk[Symbol.asyncDispose]()
})

function smallDisk(): SmallDisk {
  if (typeof disk === 'string') throw new Error(disk)
  return disk
}

async function newTarget(path: string): Promise<DirectoryTarget> {
  const target = new DirectoryTarget('shared', path)
  await target.check()
  return target
}

describe('files that are made in the work folder', () => {
  const parts = new AsyncDisposableStack()
  let stage: TargetStage
  before(async () => {
    const target = await newTarget(join(parts.use(await tempFolder()).path, 'exports'))
    stage = { target, folder: target.workFolder }
  })
  after(() => parts.disposeAsync())
  testTargetContract(() => stage)
})

describe('files that are made on another file system', { skip: WITHOUT_DISK }, () => {
  let stage: TargetStage
  before(async () => {
    stage = { target: await newTarget(join(smallDisk().path, 'exports')), folder: smallDisk().beside }
  })
  testTargetContract(() => stage)

  test('cancelling a copy leaves the file, and nothing more', async () => {
    const { target, folder } = stage
    const file = await madeFile(folder, 4 * MIB)
    const controller = new AbortController()
    const reason = new Error('cancelled')
    const publishing = target.publish(file, {
      signal: controller.signal,
      onProgress: () => controller.abort(reason),
    })
    await assert.rejects(publishing, reason)
    assert.deepEqual(await readdir(join(smallDisk().path, 'exports', file.exportId)), [])
    assert.equal((await stat(file.path)).size, file.bytes)
    await keep(target, file)
    await target.remove(file.exportId)
  })

  test('a full disk is reported as such; nothing stays of the copy, and then there is room again', async () => {
    const { target, folder } = stage
    const file = await madeFile(folder, DISK_BYTES + MIB)
    await assert.rejects(keep(target, file), failsWith('export-store-full'))
    assert.deepEqual(await readdir(join(smallDisk().path, 'exports', file.exportId)), [])
    const smaller = await madeFile(folder, 4 * MIB)
    await keep(target, smaller)
    assert.equal((await kept(target, smaller)).length, smaller.bytes)
    await target.remove(smaller.exportId)
  })

  test('the free space is that of the disk, and becomes less', async () => {
    const { target, folder } = stage
    const free = (await target.freeBytes()) ?? 0n
    assert.ok(free > 0n && free <= BigInt(DISK_BYTES))
    const file = await madeFile(folder, MIB)
    await keep(target, file)
    assert.equal(await target.freeBytes(), free - BigInt(MIB))
    await target.remove(file.exportId)
    assert.equal(await target.freeBytes(), free)
  })
})

test('folders are made for the user alone', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'deep', 'exports')
  const target = await newTarget(path)
  const file = await madeFile(target.workFolder, 10)
  await keep(target, file)
  for (const made of [path, target.workFolder, join(path, file.exportId)])
    assert.equal((await stat(made)).mode & 0o777, 0o700)
})

test('a path that is no folder, or below none, is a bad setting', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'file')
  await writeFile(path, '')
  await assert.rejects(new DirectoryTarget('shared', path).check(), failsWith('bad-config'))
  await assert.rejects(new DirectoryTarget('shared', join(path, 'exports')).check(), failsWith('bad-config'))
})

test('without its disk a target is unavailable: nothing is written or taken for removed in its mount point', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'exports')
  const target = await newTarget(path)
  const file = await madeFile(folder.path, 10)
  await keep(target, file)
  const next = await madeFile(folder.path, 10)
  await rm(path, { recursive: true })
  await mkdir(path)
  const unavailable = failsWith('export-target-unavailable')
  await assert.rejects(keep(target, next), unavailable)
  await assert.rejects(target.open(file), unavailable)
  await assert.rejects(target.remove(file.exportId), unavailable)
  await assert.rejects(target.freeBytes(), unavailable)
  assert.deepEqual(await readdir(path), [])
  assert.equal((await stat(next.path)).size, 10)
})
