import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { StoreReserve } from '../../../../appliance/recorder/writer/store-reserve.ts'
import { fillBytes, fillFiles, mountSmallDisk } from '../../../support/disks/small-disk.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const MIB = 2 ** 20
const FILES = ['1', '2', '3', '4', '5', '6', '7', '8']

for (const [what, fill] of [
  ['bytes', fillBytes],
  ['inodes', fillFiles],
] as const) {
  test(`is given up when the disk has no ${what} left, and made again`, async (t) => {
    const mounted = await mountSmallDisk({ kind: 'ext4', bytes: 32 * MIB, inodes: 256 })
    if (typeof mounted === 'string') {
      t.skip(mounted)
      return
    }
    await using disk = mounted
    const reserve = new StoreReserve(join(disk.path, 'reserve'))
    assert.equal(await reserve.isWhole(), false)
    await reserve.fill()
    assert.equal(await new StoreReserve(join(disk.path, 'reserve')).isWhole(), true)
    const write = () => writeFile(join(disk.path, 'record'), Buffer.alloc(100_000))
    await fill(join(disk.path, 'filler'))
    await assert.rejects(write(), { code: 'ENOSPC' })
    await reserve.use(write)
    assert.equal(await reserve.isWhole(), false)
    assert.deepEqual(await readdir(join(disk.path, 'reserve')), [])
  })
}

test('is kept when the work fails for another reason, and the work is done once', async () => {
  await using folder = await tempFolder()
  const reserve = new StoreReserve(join(folder.path, 'reserve'))
  await reserve.fill()
  let calls = 0
  const fail = (): Promise<never> => {
    calls += 1
    return Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' }))
  }
  await assert.rejects(reserve.use(fail), { code: 'EIO' })
  assert.equal(calls, 1)
  assert.deepEqual((await readdir(join(folder.path, 'reserve'))).sort(), FILES)
})

test('fails as the work does when there is nothing to give', async () => {
  await using folder = await tempFolder()
  const reserve = new StoreReserve(join(folder.path, 'reserve'))
  let calls = 0
  const full = (): Promise<never> => {
    calls += 1
    return Promise.reject(Object.assign(new Error('quota'), { code: 'EDQUOT' }))
  }
  await assert.rejects(reserve.use(full), { code: 'EDQUOT' })
  assert.equal(calls, 1)
  await reserve.fill()
  await assert.rejects(reserve.use(full), { code: 'EDQUOT' })
  assert.equal(calls, 3)
})
