/**
 * One byte of a store changes, a file is cut, or a part of it is lost, while no program runs; or a byte changes while a
 * recorder and an appliance run. The appliance is read before a recorder has repaired anything, and after a recorder
 * has opened the store: every packet outside the damaged block is there, none is invented, and every loss is reported.
 * When the byte is right again afterwards, a repair brings every packet back.
 *
 *   STORE_FLIPS, STORE_CUTS, STORE_TEARS, RUNNING_FLIPS   how many of each; `npm run flips -- 10000` sets them
 */
import assert from 'node:assert/strict'
import { open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { copyModel, type DamageModel, makeDamageModel } from '../../support/disks/damage-model.ts'
import {
  catalogueOf,
  checkWhatWasMet,
  OpenRecorder,
  readDamaged,
  recoverDamaged,
  repairStore,
} from '../../support/disks/damaged-copy.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const FLIPS = Number(process.env.STORE_FLIPS ?? 7)
const CUTS = Number(process.env.STORE_CUTS ?? 7)
const TEARS = Number(process.env.STORE_TEARS ?? 7)
const RUNNING_FLIPS = Number(process.env.RUNNING_FLIPS ?? 4)
const BOOT_ID = 'this-boot'
const PAGE_BYTES = 4_096

const random = seededRandom()

interface Damage {
  readonly what: string
  readonly from: number
  readonly to: number
  apply(path: string): Promise<void>
  /** Restores the bytes. Returns false if the file has been replaced since, because it was repaired in another way. */
  undo?(path: string): Promise<boolean>
}

const KINDS: Readonly<Record<string, { readonly count: number; make(bytes: Buffer): Damage }>> = {
  'a flipped byte': {
    count: FLIPS,
    make: (bytes) => {
      const at = random.integer(0, bytes.length - 1)
      const mask = random.integer(1, 255)
      return {
        what: `byte ${at} ^ ${mask}`,
        from: at,
        to: at + 1,
        apply: async (path) => {
          const damaged = Buffer.from(bytes)
          damaged.writeUInt8(damaged.readUInt8(at) ^ mask, at)
          await writeFile(path, damaged)
        },
        undo: async (path) => {
          const now = await readFile(path)
          if (now.length !== bytes.length || now.readUInt8(at) !== (bytes.readUInt8(at) ^ mask)) return false
          await writeFile(path, bytes)
          return true
        },
      }
    },
  },
  'a cut file': {
    count: CUTS,
    make: (bytes) => {
      const at = random.integer(0, bytes.length - 1)
      return {
        what: `cut at ${at}`,
        from: at,
        to: bytes.length,
        apply: (path) => truncate(path, at),
      }
    },
  },
  'a page that was lost': {
    count: TEARS,
    make: (bytes) => {
      const at = random.integer(0, Math.floor((bytes.length - 1) / PAGE_BYTES)) * PAGE_BYTES
      const to = Math.min(bytes.length, at + PAGE_BYTES)
      return {
        what: `zeros from ${at} to ${to}`,
        from: at,
        to,
        apply: (path) => writeFile(path, Buffer.from(bytes).fill(0, at, to)),
      }
    },
  },
}

describe('a damaged store', {
  timeout: TEST_LIMIT_MS + (FLIPS + CUTS + TEARS + RUNNING_FLIPS) * 2_000,
}, () => {
  let model: DamageModel
  let home: Awaited<ReturnType<typeof tempFolder>>
  before(async () => {
    home = await tempFolder()
    model = await makeDamageModel(home.path, BOOT_ID)
  })
  after(() => home[Symbol.asyncDispose]())

  test('the model itself is whole, before and after a recorder', async () => {
    const path = join(home.path, 'whole')
    await copyModel(model, path)
    const nothing = { mayLose: new Set<string>(), unflushed: false }
    const sound = { lost: 0, corruptBlocks: 0, damagedCaptures: 0 }
    assert.deepEqual(await readDamaged(path, model, nothing), sound)
    assert.equal(await recoverDamaged(path, BOOT_ID), 0)
    assert.deepEqual(await readDamaged(path, model, nothing), sound)
    const kinds = new Set(model.files.map((file) => extname(file)))
    assert.deepEqual([...kinds].sort(), [
      '.addresses',
      '.idx',
      '.json',
      '.jsonl',
      '.log',
      '.pcap',
      '.sieve',
      '.tally',
    ])
  })

  for (const [kind, { count, make }] of Object.entries(KINDS)) {
    test(`${kind}, ${count} times (SEED=${random.seed})`, async (t) => {
      const seen = { lost: 0, recovered: 0, corruptBlocks: 0, damagedCaptures: 0, events: 0 }
      const kinds = filesByKind(model.files)
      for (let round = 0; round < count; round++) {
        const file = random.pick(random.pick(kinds))
        const bytes = await readFile(join(model.path, file))
        if (bytes.length === 0) continue
        const damage = make(bytes)
        const path = join(home.path, `damaged-${round}`)
        await copyModel(model, path)
        await damage.apply(join(path, file))
        const where = `SEED=${random.seed} round ${round}: ${file}, ${damage.what}`
        try {
          const mayLose = model.mayLose(file, damage.from, damage.to)
          // In a segment that is being written, the index says what is flushed; its end is not guaranteed.
          const before = await readDamaged(path, model, { mayLose, unflushed: true })
          const events = await recoverDamaged(path, BOOT_ID)
          const after = await readDamaged(path, model, { mayLose, unflushed: false })
          const met = await checkWhatWasMet(path, BOOT_ID)
          const told = await readDamaged(path, model, { mayLose, unflushed: false })
          // Recovery restores the length of a cut file: if it had zeros there, the check proves that its packets are
          // right.
          if (kind === 'a cut file') assert.ok(told.lost <= after.lost)
          else assert.equal(told.lost, after.lost)
          if (told.lost > 0) {
            assert.ok(told.damagedCaptures > 0, 'a loss that the list does not tell')
            assert.ok(events + met > 0, 'a loss without an event')
          }
          if (told.lost > 0 && extname(file) === '.pcap' && (await damage.undo?.(join(path, file)))) {
            const marked = await readDamaged(path, model, { mayLose, unflushed: false })
            assert.equal(marked.lost, told.lost, 'a mark holds until a repair')
            await repairStore(path, BOOT_ID)
            const nothing = { mayLose: new Set<string>(), unflushed: false }
            assert.deepEqual(await readDamaged(path, model, nothing), {
              lost: 0,
              corruptBlocks: 0,
              damagedCaptures: 0,
            })
            seen.recovered += told.lost
          }
          seen.lost += told.lost
          seen.corruptBlocks += Math.max(before.corruptBlocks, told.corruptBlocks)
          seen.damagedCaptures += told.damagedCaptures
          seen.events += events + met
        } catch (error) {
          throw new Error(where, { cause: error })
        }
        await rm(path, { recursive: true })
      }
      t.diagnostic(JSON.stringify(seen))
    })
  }

  test(`a byte that flips while recorder and appliance run, ${RUNNING_FLIPS} times (SEED=${random.seed})`, async (t) => {
    const seen = { lost: 0, recovered: 0, corruptBlocks: 0, damagedCaptures: 0, events: 0 }
    const kinds = filesByKind(model.files)
    for (let round = 0; round < RUNNING_FLIPS; round++) {
      const path = join(home.path, `running-${round}`)
      await copyModel(model, path)
      const catalogue = catalogueOf(path)
      const file = random.pick(random.pick(kinds))
      let where = `SEED=${random.seed} round ${round}: ${file}`
      try {
        let running: Awaited<ReturnType<typeof readDamaged>>
        let events: number
        {
          await using recorder = await OpenRecorder.open(path, BOOT_ID)
          await recorder.load()
          await catalogue.list()
          const { at, mask } = await flipSomewhere(join(path, file))
          where += `, byte ${at} ^ ${mask}`
          const expected = { mayLose: model.mayLose(file, at, at + 1), unflushed: false }
          const met = await readDamaged(path, model, expected, catalogue)
          await recorder.checkWhatWasMet()
          running = await readDamaged(path, model, expected, catalogue)
          assert.equal(running.lost, met.lost)
          // It reads from disk records that the other program has in memory, so it may report a damaged one.
          const fresh = await readDamaged(path, model, expected)
          assert.equal(fresh.lost, running.lost, 'an appliance that starts now')
          await recorder.stopCapture()
          assert.equal((await readDamaged(path, model, expected, catalogue)).lost, running.lost)
          events = recorder.reported
          if (running.lost > 0 && extname(file) === '.pcap') {
            await flip(join(path, file), at, mask)
            const marked = await readDamaged(path, model, expected, catalogue)
            assert.equal(marked.lost, running.lost, 'a mark holds until a repair')
            await recorder.repair()
            const nothing = { mayLose: new Set<string>(), unflushed: false }
            const sound = { lost: 0, corruptBlocks: 0, damagedCaptures: 0 }
            assert.deepEqual(await readDamaged(path, model, nothing, catalogue), sound)
            assert.deepEqual(await readDamaged(path, model, nothing), sound)
            seen.recovered += running.lost
          }
        }
        if (running.lost > 0) {
          assert.ok(running.damagedCaptures > 0, 'a loss that the list does not tell')
          assert.ok(events > 0, 'a loss without an event')
        }
        seen.lost += running.lost
        seen.corruptBlocks += running.corruptBlocks
        seen.damagedCaptures += running.damagedCaptures
        seen.events += events
      } catch (error) {
        throw new Error(where, { cause: error })
      }
      await rm(path, { recursive: true })
    }
    t.diagnostic(JSON.stringify(seen))
  })
})

/** Each kind of file is equally likely, whatever the number of its files. */
function filesByKind(files: readonly string[]): readonly (readonly string[])[] {
  return [...Map.groupBy(files, (file) => (file.endsWith('.json') ? basename(file) : extname(file))).values()]
}

/** While programs have the file open and may have made it longer. */
async function flipSomewhere(path: string): Promise<{ readonly at: number; readonly mask: number }> {
  const { size } = await stat(path)
  const [at, mask] = [random.integer(0, size - 1), random.integer(1, 255)]
  await flip(path, at, mask)
  return { at, mask }
}

async function flip(path: string, at: number, mask: number): Promise<void> {
  await using file = await open(path, 'r+')
  const byte = Buffer.alloc(1)
  await file.read(byte, 0, 1, at)
  byte.writeUInt8(byte.readUInt8() ^ mask)
  await file.write(byte, 0, 1, at)
}
