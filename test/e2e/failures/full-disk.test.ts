// Another program fills the disk of a recorder completely, with bytes or with files: the oldest segments are removed,
// the capture resumes automatically, and every packet is stored or counted as dropped.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { access, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import {
  fillBytes,
  fillFiles,
  mountSmallDisk,
  type SmallDisk,
  type SmallDiskOptions,
} from '../../support/disks/small-disk.ts'
import { eventually } from '../../support/eventually.ts'
import { type CaptureWire, captureWire, WITHOUT_WIRE } from '../../support/network/capture-wire.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { NumberedSender } from '../../support/packets/numbered-sender.ts'
import { storedNumbers } from '../../support/packets/stored-numbers.ts'
import { RecorderProcess } from '../../support/processes/recorder-process.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'

const run = promisify(execFile)
const MIB = 2 ** 20
const LIMIT_MS = 60_000
const PACKETS_PER_TICK = 2
const ROUNDS = 2
const IS_LONG = process.env.CAPFLEET_LONG === '1'
/** Segments of 1 MiB that may be removed. */
const OLD_MIB = 16
/** How much longer each call takes, and the minimum number of them. */
const SLOW_SYNC_MS = 400
const SLOW_SYNCS = 3
const EXT4: SmallDiskOptions = { kind: 'ext4', bytes: 64 * MIB }
/** The smallest size of the file system. */
const XFS: SmallDiskOptions = { kind: 'xfs', bytes: 320 * MIB }
const FEW_FILES: SmallDiskOptions = { kind: 'ext4', bytes: 64 * MIB, inodes: 1_024 }

interface Stage {
  readonly disk: SmallDisk
  readonly wire: CaptureWire
  readonly recorder: RecorderProcess
  /** How many segments have been removed so far, and how many packets the segments of this capture hold. */
  readonly removedSegments: () => Promise<number>
  readonly removedPackets: (name: string) => Promise<bigint>
}

/** Runs `work` with a recorder that has its own disk and an old capture. Skips the test if no disk can be made. */
async function onDisk(
  t: TestContext,
  options: SmallDiskOptions,
  work: (stage: Stage) => Promise<void>,
  through: (disk: SmallDisk) => Promise<readonly string[]> = async () => [],
): Promise<void> {
  const mounted = await mountSmallDisk(options)
  if (typeof mounted === 'string') {
    t.skip(mounted)
    return
  }
  await using disk = mounted
  await using wire = await captureWire()
  await using recorder = await RecorderProcess.start({
    wire,
    folder: disk.beside,
    storePath: join(disk.path, 'store'),
    through: await through(disk),
  })
  const old = join(disk.beside, 'old.pcap')
  await writeBigCapture(old, OLD_MIB * 1_024)
  await recorder.client.importCapture({ name: 'old', files: [old] })
  const removals = async (): Promise<Record<string, string>[]> => {
    const text = await readFile(join(recorder.storePath, 'events.jsonl'), 'utf8')
    const events = text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).data]))
    return events.filter(({ Kind }) => Kind === 'segment-removed')
  }
  const removedPackets = async (name: string): Promise<bigint> =>
    (await removals()).reduce(
      (sum, { name: of, packets = '' }) => (of === name ? sum + BigInt(packets) : sum),
      0n,
    )
  // The reserve exists.
  await eventually(() => exists(join(recorder.storePath, 'reserve', '8')), {
    limitMs: LIMIT_MS,
    message: 'the recorder makes its reserve',
  })
  await work({ disk, wire, recorder, removedSegments: async () => (await removals()).length, removedPackets })
}

/** While this file exists, calls of the recorder fail or take longer: failing_disk.cc. */
function failing(disk: SmallDisk): string {
  return join(disk.beside, 'failing')
}

/** Runs a recorder under the control of failing(). */
async function throughFailing(disk: SmallDisk): Promise<readonly string[]> {
  const library = join(disk.beside, 'failing-disk.so')
  const source = join(REPOSITORY_ROOT, 'test/support/disks/failing_disk.cc')
  await run('g++', ['-shared', '-fPIC', source, '-o', library, '-ldl'])
  return ['env', `LD_PRELOAD=${library}`, `FAILING_DISK=${failing(disk)}`]
}

/** What is sent from now on is stored. */
async function storesAgain({ recorder }: Stage, sender: NumberedSender): Promise<void> {
  const { sent } = sender
  await eventually(
    async () => {
      const { state, counts } = await recorder.client.captureReport()
      return state === 'running' && counts.packets + counts.drops > BigInt(sent)
    },
    { limitMs: LIMIT_MS, message: 'the capture continues by itself' },
  )
}

/** Everything that was sent is in the capture, once and in order, or was counted as dropped or removed. */
async function assertAccounted({ recorder, removedPackets }: Stage, sender: NumberedSender): Promise<void> {
  await sender[Symbol.asyncDispose]()
  await eventually(
    async () => {
      const { counts } = await recorder.client.captureReport()
      return counts.packets + counts.drops === BigInt(sender.sent) && counts.pendingPackets === 0n
    },
    { limitMs: LIMIT_MS, message: `all of ${sender.sent} packets are stored or dropped` },
  )
  const stopped = await recorder.client.stopCapture(false)
  // Retention may continue for a moment: what it removes between the two reads is in neither or in both.
  let numbers: readonly number[] = []
  await eventually(
    async () => {
      // Reading a segment fails if it is removed meanwhile.
      numbers = await storedNumbers(join(recorder.storePath, 'captures', stopped.name)).catch(() => [])
      return BigInt(numbers.length) + (await removedPackets(stopped.name)) === stopped.packets
    },
    { limitMs: LIMIT_MS, message: `${stopped.packets} packets are there or were removed` },
  )
  assert.equal(stopped.packets + stopped.drops, BigInt(sender.sent))
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  )
  assert.equal(new Set(numbers).size, numbers.length)
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}

/** To the recorder they are as any other failure. */
const DISKS_OF_OTHERS = [
  ['EROFS', 30],
  ['EDQUOT', 122],
] as const

describe('a full disk', { skip: WITHOUT_WIRE }, () => {
  for (const options of IS_LONG ? [EXT4, XFS] : [EXT4]) {
    test(`${options.kind}: while a capture runs`, (t) =>
      onDisk(t, options, async (stage) => {
        const { disk, wire, recorder } = stage
        await recorder.client.startCapture('live')
        await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
        for (let round = 1; round <= ROUNDS; round++) {
          const before = await stage.removedSegments()
          await fillBytes(join(disk.path, 'filler'))
          await eventually(async () => (await stage.removedSegments()) > before, {
            limitMs: LIMIT_MS,
            message: `the oldest segments are removed, round ${round}`,
          })
          await storesAgain(stage, sender)
        }
        await assertAccounted(stage, sender)
      }))
  }

  test('when the recorder starts', (t) =>
    onDisk(t, EXT4, async (stage) => {
      const { disk, wire, recorder } = stage
      const { name } = await recorder.client.startCapture('live')
      await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
      await storesAgain(stage, sender)
      await sender[Symbol.asyncDispose]()
      await recorder.end('SIGTERM')
      await fillBytes(join(disk.path, 'filler'))
      await recorder.start()
      await using later = await NumberedSender.start(wire, PACKETS_PER_TICK)
      await eventually(async () => (await recorder.running()).name === name, {
        limitMs: LIMIT_MS,
        message: 'the capture is resumed',
      })
      await eventually(async () => (await stage.removedSegments()) > 0, {
        limitMs: LIMIT_MS,
        message: 'the oldest segments are removed',
      })
      const { counts } = await recorder.client.captureReport()
      await eventually(async () => (await recorder.client.captureReport()).counts.packets > counts.packets, {
        limitMs: LIMIT_MS,
        message: 'packets are stored',
      })
      await later[Symbol.asyncDispose]()
    }))

  test('when the recorder stops', (t) =>
    onDisk(t, EXT4, async (stage) => {
      const { disk, wire, recorder } = stage
      await recorder.client.startCapture('live')
      await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
      await storesAgain(stage, sender)
      await fillBytes(join(disk.path, 'filler'))
      await sender[Symbol.asyncDispose]()
      await recorder.end('SIGTERM')
      await rm(join(disk.path, 'filler'))
      await recorder.start()
      await recorder.running()
      await assertAccounted(stage, sender)
    }))

  for (const [name, number] of [['EIO', 5], ...(IS_LONG ? DISKS_OF_OTHERS : [])] as const) {
    test(`that fails with ${name} for a while: the recorder reports it and lives on`, (t) => {
      const work = async ({ disk, wire, recorder, ...stage }: Stage): Promise<void> => {
        const { pid } = await recorder.client.info()
        await recorder.client.startCapture('live')
        await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
        await writeFile(failing(disk), `${number} 0`)
        await fillBytes(join(disk.path, 'filler'))
        await eventually(async () => (await recorder.client.captureReport()).retention?.problem !== '', {
          limitMs: LIMIT_MS,
          message: 'the failure is reported',
        })
        await rm(failing(disk))
        await eventually(async () => (await stage.removedSegments()) > 0, {
          limitMs: LIMIT_MS,
          message: 'the oldest segments are removed',
        })
        await storesAgain({ disk, wire, recorder, ...stage }, sender)
        await assertAccounted({ disk, wire, recorder, ...stage }, sender)
        await eventually(async () => (await recorder.client.captureReport()).retention?.problem === '', {
          limitMs: LIMIT_MS,
          message: 'all is well again',
        })
        assert.deepEqual(await recorder.client.info(), { pid }, 'it is the same process')
      }
      return onDisk(t, EXT4, work, throughFailing)
    })
  }

  test('that is full, and of which each sync takes longer', (t) => {
    const work = async (stage: Stage): Promise<void> => {
      const { disk, wire, recorder } = stage
      await recorder.client.startCapture('live')
      await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
      await writeFile(failing(disk), `0 ${SLOW_SYNC_MS}`)
      await fillBytes(join(disk.path, 'filler'))
      await eventually(async () => (await stage.removedSegments()) > 0, {
        limitMs: LIMIT_MS,
        message: 'the oldest segments are removed',
      })
      await storesAgain(stage, sender)
      assert.ok((await stat(`${failing(disk)}.syncs`)).size >= SLOW_SYNCS, 'syncs were slow')
      await assertAccounted(stage, sender)
    }
    return onDisk(t, EXT4, work, throughFailing)
  })

  test('without inodes: while a capture runs, and when the recorder starts', (t) =>
    onDisk(t, FEW_FILES, async (stage) => {
      const { disk, wire, recorder } = stage
      await recorder.client.startCapture('live')
      await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
      await fillFiles(join(disk.path, 'filler'))
      await eventually(async () => (await stage.removedSegments()) > 0, {
        limitMs: LIMIT_MS,
        message: 'the oldest segments are removed',
      })
      await storesAgain(stage, sender)
      await assertAccounted(stage, sender)
      await recorder.end('SIGTERM')
      const before = await stage.removedSegments()
      await fillFiles(join(disk.path, 'filler again'))
      await recorder.start()
      await eventually(async () => (await stage.removedSegments()) > before, {
        limitMs: LIMIT_MS,
        message: 'the next recorder removes some too',
      })
      await eventually(
        () =>
          recorder.client.info().then(
            () => true,
            () => false,
          ),
        {
          limitMs: LIMIT_MS,
          message: 'the recorder takes commands',
        },
      )
    }))
})
