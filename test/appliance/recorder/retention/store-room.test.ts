import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { isLacking, NOTHING, StoreRoom } from '../../../../appliance/recorder/retention/store-room.ts'
import { fillFiles, mountSmallDisk } from '../../../support/disks/small-disk.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const MIB = 2 ** 20

test('two seconds of the capture rate stay free if that is more than the setting, and 4 MiB always', async () => {
  await using folder = await tempFolder()
  const floor = (minFreeBytes: number, bytesPerSecond: number): bigint =>
    new StoreRoom({
      folder: folder.path,
      settings: { maxBytes: 0, minFreeBytes },
      bytesPerSecond: () => bytesPerSecond,
    }).minFreeBytes
  assert.equal(floor(2 ** 30, 1_000), 2n ** 30n)
  assert.equal(floor(2 ** 30, 1_250_000_000.4), 2_500_000_001n)
  assert.equal(floor(0, 0), BigInt(4 * MIB))
})

test('a disk without inodes lacks files, not bytes', async (t) => {
  const mounted = await mountSmallDisk({ kind: 'ext4', bytes: 64 * MIB, inodes: 2_000 })
  if (typeof mounted === 'string') {
    t.skip(mounted)
    return
  }
  await using disk = mounted
  const captures = join(disk.path, 'captures')
  await mkdir(captures)
  const settings = { maxBytes: 0, minFreeBytes: 0 }
  const room = new StoreRoom({ folder: captures, settings, bytesPerSecond: () => 0 })
  assert.equal(isLacking(await room.lack(0n, NOTHING)), false)
  await fillFiles(join(disk.path, 'filler'))
  const lack = await room.lack(0n, NOTHING)
  assert.ok(lack.files > 0n && lack.disk < 0n, `${lack.files} files, ${lack.disk} bytes`)
})

test('what is held counts against maxBytes, and what is free against minFreeBytes', async () => {
  await using folder = await tempFolder()
  const settings = { maxBytes: 100, minFreeBytes: 0 }
  const room = new StoreRoom({ folder: folder.path, settings, bytesPerSecond: () => 0 })
  const { stored, disk } = await room.lack(90n, { stored: 20n, disk: 0n })
  assert.equal(stored, 10n)
  assert.ok(disk < 0n)
})
