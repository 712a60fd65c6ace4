// Disks that reject what retention does: the failure is reported once and retried, and it does not hold up other
// captures.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { mountSmallDisk, type SmallDisk } from '../../../support/disks/small-disk.ts'
import { StoreKeeper } from '../../../support/disks/store-keeper.ts'
import { makePacket, makePcap } from '../../../support/packets/packet-maker.ts'

const SEGMENT_BYTES = 100_000
/** Nine packets are a segment. */
const PACKET_BYTES = 10_000
const SEGMENTS = 5

interface Stage {
  readonly disk: SmallDisk
  /** Opens the store with space for this many segments. */
  open(segments: number): Promise<StoreKeeper>
}

/** Two captures, `first` and `second`, of five segments each. */
async function onDisk(t: TestContext, work: (stage: Stage) => Promise<void>): Promise<void> {
  const mounted = await mountSmallDisk({ kind: 'ext4', bytes: 64 * 2 ** 20 })
  if (typeof mounted === 'string') {
    t.skip(mounted)
    return
  }
  await using disk = mounted
  const storePath = join(disk.path, 'store')
  const open = (segments: number): Promise<StoreKeeper> =>
    StoreKeeper.open({
      storePath,
      settings: { maxBytes: segments === 0 ? 0 : segments * SEGMENT_BYTES },
      segmentBytes: SEGMENT_BYTES,
    })
  {
    await using keeper = await open(0)
    const packets = Array.from({ length: 9 * SEGMENTS }, (_, i) =>
      makePacket(BigInt(i) * 1_000_000n, `${i}`, PACKET_BYTES),
    )
    const file = join(disk.beside, 'packets.pcap')
    await writeFile(file, makePcap(packets))
    await keeper.writer.importCapture({ name: 'first', files: [file] })
    await keeper.writer.importCapture({ name: 'second', files: [file] })
  }
  await work({ disk, open })
}

const removedFrom = (keeper: StoreKeeper): unknown[] =>
  keeper.events.flatMap(({ kind, fields }) => (kind === 'segment-removed' ? [fields.name] : []))
const reported = (keeper: StoreKeeper): string[] =>
  keeper.kinds().filter((kind) => kind.startsWith('retention-'))
/** Nobody can change its contents, not even root. */
const freeze = (path: string): Disposable => {
  execFileSync('chattr', ['+i', path])
  let isFrozen = true
  return {
    [Symbol.dispose]() {
      if (isFrozen) execFileSync('chattr', ['-i', path])
      isFrozen = false
    },
  }
}

test('a capture whose record cannot be changed loses nothing, and the next one does', (t) =>
  onDisk(t, async ({ disk, open }) => {
    using frozen = freeze(join(disk.path, 'store/captures/first/segments.log'))
    await using keeper = await open(8)
    await keeper.collect()
    assert.deepEqual(removedFrom(keeper), ['second', 'second'])
    assert.deepEqual(reported(keeper), ['retention-failed'])
    assert.match(keeper.retention.report().problem, /EPERM/)
    frozen[Symbol.dispose]()
    await keeper.collect()
    assert.deepEqual(reported(keeper), ['retention-failed'], 'there is room: it was not tried')
    await keeper.retention.makeRoom(2n ** 40n)
    assert.deepEqual(reported(keeper), ['retention-failed', 'retention-recovered'])
    assert.equal(keeper.retention.report().problem, '')
    assert.equal(removedFrom(keeper).filter((name) => name === 'first').length, SEGMENTS)
  }))

test('files that cannot be removed are tried again, and cost their capture no further segment', (t) =>
  onDisk(t, async ({ disk, open }) => {
    using frozen = freeze(join(disk.path, 'store/captures/first/cap0/00000'))
    await using keeper = await open(8)
    for (let i = 0; i < 5; i++) await keeper.collect()
    const ofFirst = removedFrom(keeper).filter((name) => name === 'first').length
    assert.equal(ofFirst, 2, 'as many as have to go')
    assert.ok(removedFrom(keeper).includes('second'), 'room is made elsewhere')
    assert.deepEqual(reported(keeper), ['retention-failed'])
    frozen[Symbol.dispose]()
    await keeper.collect()
    assert.deepEqual(reported(keeper), ['retention-failed', 'retention-recovered'])
  }))

test('a disk that is read-only is reported once, and when it is well again; a start on it fails', (t) =>
  onDisk(t, async ({ disk, open }) => {
    const store = join(disk.path, 'store')
    const protect = (): void => {
      execFileSync('mount', ['--bind', store, store])
      execFileSync('mount', ['-o', 'remount,bind,ro', store])
    }
    const release = (): void => void execFileSync('umount', [store])
    protect()
    await assert.rejects(open(8), { code: 'store-unavailable', message: /EROFS/ })
    release()
    await using keeper = await open(0)
    protect()
    await keeper.retention.makeRoom(2n ** 40n)
    await keeper.retention.makeRoom(2n ** 40n)
    assert.deepEqual(reported(keeper), ['retention-failed'])
    assert.deepEqual(removedFrom(keeper), [])
    release()
    await keeper.retention.makeRoom(2n ** 40n)
    assert.deepEqual(reported(keeper), ['retention-failed', 'retention-recovered'])
  }))

test('a store that cannot be read is reported, and checked again', (t) =>
  onDisk(t, async ({ disk, open }) => {
    await using keeper = await open(0)
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', join(disk.path, 'store')])
    await keeper.collect()
    assert.deepEqual(reported(keeper), ['retention-failed'])
    execFileSync('umount', [join(disk.path, 'store')])
    await keeper.collect()
    assert.deepEqual(reported(keeper), ['retention-failed', 'retention-recovered'])
  }))

test('the rate of the capture is room that stays free', async (t) => {
  const mounted = await mountSmallDisk({ kind: 'ext4', bytes: 64 * 2 ** 20 })
  if (typeof mounted === 'string') {
    t.skip(mounted)
    return
  }
  await using disk = mounted
  await using keeper = await StoreKeeper.open({
    storePath: join(disk.path, 'store'),
    settings: { onFull: 'stop' },
    bytesPerSecond: 32 * 2 ** 20,
  })
  assert.equal(keeper.retention.report().minFreeBytes, BigInt(64 * 2 ** 20))
  assert.deepEqual(keeper.kinds(), ['store-full'])
})
