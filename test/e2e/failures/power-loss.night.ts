/**
 * The power fails again and again while a recorder captures numbered packets to its own disk; then what the disk held
 * at that moment is recovered and read.
 *
 *   POWER_LOSSES=<n>   number on each file system (5 in npm test, 100 in the long run)
 *   SEED=<n>           repeats the choice of moments
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { clockNs } from '../../../native/addon.ts'
import { type FileSystem, PowerLossDisk, WITHOUT_DISKS } from '../../support/disks/power-loss-disk.ts'
import { type RecoveredCapture, recoverStore } from '../../support/disks/recovered-store.ts'
import { eventually } from '../../support/eventually.ts'
import { captureWire, WITHOUT_WIRE } from '../../support/network/capture-wire.ts'
import { flushedBefore, lossesIn, sentFromNowOn } from '../../support/packets/flushed-packets.ts'
import { NumberedSender } from '../../support/packets/numbered-sender.ts'
import { pause } from '../../support/pause.ts'
import { RecorderProcess } from '../../support/processes/recorder-process.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const run = promisify(execFile)
const POWER_LOSSES = Number(process.env.POWER_LOSSES ?? 5)
/** A shared machine may stop a process for long, so the amount lost is judged only in the long run. */
const IS_LONG_RUN = process.env.POWER_LOSSES !== undefined
const FILE_SYSTEMS: readonly FileSystem[] = ['ext4', 'xfs']
/** Each disk starts empty, so that reading its contents stays quick. */
const LOSSES_PER_DISK = 10
const LOSSES_WITHOUT_SYNC = 10
const PACKETS_PER_TICK = 20
const LONGEST_LIFE_MS = 600
const SECTOR_BYTES = 4_096
const LOST_LIMIT_MS = 2_000
/** Many small segments, and captures that start and end: as many chances for errors as possible. */
const BUSY = { segmentBytes: 2 ** 20, syncIntervalMs: 100, roll: { everyBytes: 3 * 2 ** 20 } }
const DEFAULTS = { segmentBytes: 2 ** 30, syncIntervalMs: 1_000 }

describe('power loss', {
  skip: WITHOUT_WIRE || WITHOUT_DISKS,
  timeout: TEST_LIMIT_MS + POWER_LOSSES * 30_000,
}, () => {
  for (const fileSystem of FILE_SYSTEMS) {
    test(`${fileSystem}, ${POWER_LOSSES} times: what was flushed is there, once, byte for byte`, async (t) => {
      const random = seededRandom()
      t.diagnostic(`SEED=${random.seed}`)
      const losses = await losePower({ fileSystem, random, count: POWER_LOSSES, capture: BUSY })
      assert.deepEqual(
        losses.flatMap(({ problems }) => problems),
        [],
      )
      const sum = (of: (loss: PowerLoss) => number): number =>
        losses.reduce((total, loss) => total + of(loss), 0)
      t.diagnostic(
        `${sum((loss) => loss.promised)} packets flushed before, ${sum((loss) => loss.stored)} stored`,
      )
      assert.ok(sum((loss) => loss.promised) > POWER_LOSSES * PACKETS_PER_TICK, 'much was flushed')
    })

    test(`${fileSystem}: with default settings little is lost`, async (t) => {
      const random = seededRandom()
      t.diagnostic(`SEED=${random.seed}`)
      const losses = await losePower({ fileSystem, random, count: POWER_LOSSES, capture: DEFAULTS })
      assert.deepEqual(
        losses.flatMap(({ problems }) => problems),
        [],
      )
      const lostMs = losses.map((loss) => loss.lostMs).sort((a, b) => a - b)
      t.diagnostic(
        `the last ${Math.round(lostMs.at(-1) ?? 0)} ms at most, mostly ${Math.round(median(lostMs))} ms`,
      )
      if (IS_LONG_RUN) assert.ok((lostMs.at(-1) ?? 0) <= LOST_LIMIT_MS)
    })

    test(`${fileSystem}: a disk keeps what it was given, and without its cache only what was flushed`, async () => {
      await using disk = await PowerLossDisk.make(fileSystem)
      const file = join(disk.path, 'file')
      await writeFile(file, 'a'.repeat(SECTOR_BYTES))
      await disk.sync()
      // Written to the disk at once, without a flush.
      const args = ['of=file', `bs=${SECTOR_BYTES}`, 'count=1', 'oflag=direct', 'conv=notrunc', 'status=none']
      await run('dd', ['if=/dev/zero', ...args], { cwd: disk.path })
      // In this order, because the other kind of copy flushes.
      for (const [losesCache, first] of [
        [true, 'a'],
        [false, '\0'],
      ] as const) {
        await using copy = await disk.cutPower({ losesCache })
        const stored = await readFile(join(copy.path, 'file'), 'utf8')
        assert.deepEqual([stored.length, stored[0]], [SECTOR_BYTES, first])
      }
    })

    test(`negative control: ${fileSystem}, without syncs something is lost or damaged`, async (t) => {
      await using folder = await tempFolder()
      const library = join(folder.path, 'no-sync.so')
      const source = join(REPOSITORY_ROOT, 'test/support/disks/no_sync.cc')
      await run('g++', ['-shared', '-fPIC', source, '-o', library])
      const through = ['env', `LD_PRELOAD=${library}`]
      const random = seededRandom()
      t.diagnostic(`SEED=${random.seed}`)
      const count = LOSSES_WITHOUT_SYNC
      const losses = await losePower({ fileSystem, random, count, capture: BUSY, through })
      const problems = losses.flatMap((loss, index) =>
        loss.problems.map((problem) => `${index + 1}: ${problem}`),
      )
      t.diagnostic(`first seen in cycle ${problems[0]}`)
      assert.notEqual(problems.length, 0)
    })
  }
})

interface LossOptions {
  readonly fileSystem: FileSystem
  readonly random: SeededRandom
  readonly count: number
  readonly capture: Readonly<Record<string, unknown>>
  readonly through?: readonly string[]
}

interface PowerLoss {
  /** Missing or damaged packets. */
  readonly problems: readonly string[]
  /** Packets that were flushed before. */
  readonly promised: number
  readonly stored: number
  /** The time from the last stored packet to the power cut. */
  readonly lostMs: number
}

async function losePower(options: LossOptions): Promise<PowerLoss[]> {
  const losses: PowerLoss[] = []
  while (losses.length < options.count) {
    const count = Math.min(LOSSES_PER_DISK, options.count - losses.length)
    losses.push(...(await loseOneDisk({ ...options, count })))
  }
  return losses
}

async function loseOneDisk({
  fileSystem,
  random,
  count,
  capture,
  through,
}: LossOptions): Promise<PowerLoss[]> {
  await using folder = await tempFolder()
  await using disk = await PowerLossDisk.make(fileSystem)
  await using wire = await captureWire()
  const afterBoot = [...(await inAnotherBoot(folder.path)), ...(through ?? [])]
  await using recorder = await RecorderProcess.start({ wire, folder: disk.path, capture, through: afterBoot })
  await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
  await recorder.client.startCapture('cut')
  const from = await sentFromNowOn(sender)
  // In the negative control, too, the store itself exists.
  await disk.sync()
  await eventually(async () => (await flushedBy(recorder, sender)) > from, {
    message: 'something is flushed',
  })
  const losses: PowerLoss[] = []
  while (losses.length < count) {
    await pause(random.integer(0, LONGEST_LIFE_MS), 'power is lost at any moment')
    const losesCache = random.pick([false, true])
    losses.push(await cutPower({ disk, recorder, sender, from, losesCache }))
  }
  return losses
}

interface Cut {
  readonly disk: PowerLossDisk
  readonly recorder: RecorderProcess
  readonly sender: NumberedSender
  /** The first packet that is certainly in the capture. */
  readonly from: number
  /** The disk loses what was not flushed. */
  readonly losesCache: boolean
}

async function cutPower({ disk, recorder, sender, from, losesCache }: Cut): Promise<PowerLoss> {
  const { name, counts } = await recorder.client.captureReport()
  assert.equal(counts.drops, 0n, 'this machine is too busy for this test')
  const to = flushedBefore(sender, counts.flushedNs)
  const cutNs = clockNs()
  await using copy = await disk.cutPower({ losesCache })
  try {
    const captures = await recoverStore(join(copy.path, 'store'))
    const numbers = captures.flatMap((capture) => capture.numbers)
    const there = captures.find(({ record }) => record.name === name)?.numbers.length ?? 0
    const problems = lossesIn(numbers, [{ from, to }])
    if (there < counts.packets) problems.push(`${name} has ${there} packets of ${counts.packets}`)
    const lostMs = Number(cutNs - lastNs(captures)) / 1e6
    return { problems, promised: to - from, stored: numbers.length, lostMs }
  } catch (error) {
    return { problems: [String(error)], promised: to - from, stored: 0, lostMs: 0 }
  }
}

/** Runs a program so that it sees another boot id than this process. */
async function inAnotherBoot(folder: string): Promise<string[]> {
  const bootId = join(folder, 'boot-id')
  await writeFile(bootId, `${randomUUID()}\n`)
  const script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
  return ['unshare', '--mount', 'sh', '-c', script, bootId]
}

async function flushedBy(recorder: RecorderProcess, sender: NumberedSender): Promise<number> {
  const { counts } = await recorder.client.captureReport()
  return flushedBefore(sender, counts.flushedNs)
}

function lastNs(captures: readonly RecoveredCapture[]): bigint {
  const stored = captures.findLast(({ numbers }) => numbers.length > 0)
  return stored?.record.table.portOf(0)?.newest?.maxNs ?? 0n
}

function median(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}
