import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { StoreWriter } from '../../../appliance/recorder/writer/store-writer.ts'
import { CaptureCatalogue } from '../../../appliance/store/capture-catalogue.ts'
import { encodeRecord } from '../../../appliance/store/capture-record.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import type { StoredCapture } from '../../../appliance/store/stored-capture.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { putCapture } from '../../support/disks/store-captures.ts'
import { captureFacts, captureRecord } from '../../support/packets/capture-records.ts'
import { pause } from '../../support/pause.ts'
import { ownProcessorMs } from '../../support/processes/processor-time.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const silent = createLog('test', 'silent')
const random = seededRandom()
const IS_LONG = process.env.CAPFLEET_LONG === '1'
/** Of a large store. */
const CAPTURES = IS_LONG ? 10_000 : 1_000
const PAGINGS = IS_LONG ? 20 : 5

const names = (captures: readonly StoredCapture[]): string[] => captures.map(({ name }) => name)

test('lists captures newest first and sees what comes and goes', async () => {
  await using folder = await tempFolder()
  const catalogue = new CaptureCatalogue(storePaths(folder.path), silent)
  await putCapture(folder.path, captureRecord('old', { startNs: 1_000n }))
  await putCapture(folder.path, captureRecord('new', { startNs: 1_500n }))
  assert.deepEqual(names(await catalogue.list()), ['new', 'old'])
  await putCapture(folder.path, captureRecord('newest', { startNs: 1_900n }))
  assert.deepEqual(names(await catalogue.list()), ['newest', 'new', 'old'])
  await rm(join(folder.path, 'captures', 'new'), { recursive: true })
  assert.deepEqual(names(await catalogue.list()), ['newest', 'old'])
})

test('sees every one of many quick changes, also a capture replaced by one of the same name', async () => {
  await using folder = await tempFolder()
  const catalogue = new CaptureCatalogue(storePaths(folder.path), silent)
  for (let round = 1n; round <= (IS_LONG ? 200n : 60n); round++) {
    await rm(join(folder.path, 'captures', 'a'), { recursive: true, force: true })
    await putCapture(folder.path, captureRecord('a', { packets: round }))
    assert.equal((await catalogue.find('a')).packets, round)
  }
})

test('hidden and foreign folders are not captures; one with an unreadable record is a damaged capture', async () => {
  await using folder = await tempFolder()
  const catalogue = new CaptureCatalogue(storePaths(folder.path), silent)
  await putCapture(folder.path, captureRecord('good'))
  const { captures } = storePaths(folder.path)
  for (const name of ['.importing-x', '.deleting-y', 'empty', 'broken', 'wrong-name']) {
    await mkdir(join(captures, name))
  }
  const text = (name: string): string => encodeRecord({ ...captureFacts(name), revision: 1 })
  await writeFile(join(captures, '.importing-x', 'capture.json'), text('x'))
  await writeFile(join(captures, 'broken', 'capture.json'), '{"format":1')
  await writeFile(join(captures, 'wrong-name', 'capture.json'), text('other'))
  await writeFile(join(captures, 'file'), '')
  assert.deepEqual(names(await catalogue.list()), ['good', 'broken', 'wrong-name'])
  assert.equal((await catalogue.find('broken')).problems.length, 3)
  assert.deepEqual((await catalogue.find('good')).problems, [])
})

test('a base name is its newest capture, a full name only itself', async () => {
  await using folder = await tempFolder()
  const catalogue = new CaptureCatalogue(storePaths(folder.path), silent)
  await putCapture(folder.path, captureRecord('trading_20261120_0930', { startNs: 1_000n }))
  await putCapture(folder.path, captureRecord('trading_20261120_0930_15', { startNs: 1_200n }))
  await putCapture(folder.path, captureRecord('trading_20261120_0900', { startNs: 900n }))
  await putCapture(folder.path, captureRecord('trading_slow_20261120_0900', { startNs: 1_900n }))
  assert.equal((await catalogue.find('trading')).name, 'trading_20261120_0930_15')
  assert.equal((await catalogue.find('trading_20261120_0930')).name, 'trading_20261120_0930')
  assert.equal((await catalogue.find('trading_slow')).name, 'trading_slow_20261120_0900')
  await assert.rejects(catalogue.findExact('trading'), { code: 'unknown-capture' })
})

test('an unknown name is answered with near ones', async () => {
  await using folder = await tempFolder()
  const catalogue = new CaptureCatalogue(storePaths(folder.path), silent)
  await putCapture(folder.path, captureRecord('trading_20261120_0930'))
  await assert.rejects(
    catalogue.find('tradnig_20261120_0930'),
    (error) =>
      error instanceof CapfleetError &&
      error.code === 'unknown-capture' &&
      error.message.includes('trading_20261120_0930'),
  )
})

test('a store that is missing is store-unavailable, and usable when it comes', async () => {
  await using folder = await tempFolder()
  const catalogue = new CaptureCatalogue(storePaths(join(folder.path, 'later')), silent)
  await assert.rejects(catalogue.list(), { code: 'store-unavailable' })
  await putCapture(join(folder.path, 'later'), captureRecord('a'))
  assert.deepEqual(names(await catalogue.list()), ['a'])
})

test(`${CAPTURES} captures cost a request less than 5 ms of processor time once they are known`, async () => {
  await using folder = await tempFolder()
  const catalogue = new CaptureCatalogue(storePaths(folder.path), silent)
  for (let index = 0; index < CAPTURES; index++) {
    await putCapture(
      folder.path,
      captureRecord(`c${index}_20261120_0930`, { startNs: BigInt(index), endNs: 20_000n }),
    )
  }
  await writeFile(storePaths(folder.path).changes, 'generation\n')
  await catalogue.list()
  // The time stamp of the folder must be old enough to be trusted.
  await pause(100, 'the time stamp of the folder must be old enough to be trusted')
  await catalogue.list()
  const before = ownProcessorMs()
  for (let index = 0; index < 100; index++) await catalogue.find(`c${index}`)
  const tookMs = ownProcessorMs() - before
  assert.ok(tookMs / 100 < 5, `${tookMs} ms for 100`)
})

test('the list continues after a capture that has gone, and after one that runs or has just ended', async () => {
  await using folder = await tempFolder()
  const catalogue = new CaptureCatalogue(storePaths(folder.path), silent)
  for (const name of ['a', 'b', 'c']) await putCapture(folder.path, captureRecord(name))
  await putCapture(folder.path, captureRecord('runs', { state: 'active', startNs: 1_500n }))
  const after = async (name: string) => {
    const { before, captures } = await catalogue.listAfter(name)
    return [before, names(captures)]
  }
  assert.deepEqual(names(await catalogue.list()), ['runs', 'a', 'b', 'c'])
  assert.deepEqual(await after('runs'), [1, ['a', 'b', 'c']])
  assert.deepEqual(await after('b'), [3, ['c']])
  await rm(join(folder.path, 'captures', 'b'), { recursive: true })
  assert.deepEqual(await after('b'), [2, ['c']])
  await rm(join(folder.path, 'captures', 'runs'), { recursive: true })
  await putCapture(folder.path, captureRecord('runs', { startNs: 1_500n }))
  assert.deepEqual(await after('runs'), [1, ['a', 'c']])
  assert.deepEqual(await after('c'), [3, []])
  await assert.rejects(catalogue.listAfter('never'), { code: 'unknown-capture' })
})

/** Captures come and go, end, and have equal starts, while a client reads pages. */
test('captures that existed before a list was requested are in it, also with concurrent requests', async () => {
  await using folder = await tempFolder()
  const { captures } = storePaths(folder.path)
  await mkdir(captures, { recursive: true })
  const catalogue = new CaptureCatalogue(storePaths(folder.path), silent)
  for (let i = 0; i < (IS_LONG ? 60 : 36); i++) {
    const name = `c${i}`
    await putCapture(folder.path, captureRecord(name, { startNs: 1n }))
    await rename(join(captures, name), join(captures, `.${name}`))
    const early = catalogue.list()
    // Somewhere in the middle of that read.
    for (let turn = 0; turn < i % 12; turn++) await new Promise(setImmediate)
    renameSync(join(captures, `.${name}`), join(captures, name))
    assert.ok(names(await catalogue.list()).includes(name), `round ${i}`)
    await early
  }
})

test(`paging ends, and shows once what is there all the time (SEED=${random.seed})`, async () => {
  for (let round = 0; round < PAGINGS; round++) {
    await using folder = await tempFolder()
    const { captures } = storePaths(folder.path)
    const catalogue = new CaptureCatalogue(storePaths(folder.path), silent)
    const starts = new Map<string, bigint>()
    // A new capture with the name of a removed one is listed again, correctly.
    const used = new Set<string>()
    const come = async (): Promise<void> => {
      const name = `c${round}-${random.integer(0, 999)}`
      if (used.has(name)) return
      used.add(name)
      const startNs = BigInt(random.integer(1, 6))
      starts.set(name, startNs)
      await putCapture(
        folder.path,
        captureRecord(name, { startNs, state: random.pick(['active', 'closed']) }),
      )
    }
    const go = async (name: string): Promise<void> => {
      starts.delete(name)
      await rm(join(captures, name), { recursive: true })
    }
    const end = async (name: string): Promise<void> => {
      const record = captureFacts(name, { startNs: starts.get(name) ?? 0n })
      await writeFile(join(captures, `.${name}`), encodeRecord({ ...record, revision: 2 }))
      await rename(join(captures, `.${name}`), join(captures, name, 'capture.json'))
    }
    for (let i = 0; i < 30; i++) await come()
    const stays = new Set(starts.keys())
    const shown: string[] = []
    const limit = random.integer(1, 4)
    let page = (await catalogue.list()).slice(0, limit)
    while (page.length > 0) {
      shown.push(...names(page))
      assert.ok(shown.length <= 200, `SEED=${random.seed}: it goes on for ever`)
      for (let change = 0; change < 3; change++) {
        const name = random.pick([...starts.keys(), ...names(page).filter((known) => starts.has(known))])
        const what = random.integer(0, 5)
        if (what <= 1) await come()
        else if (what === 2) await end(name)
        else if (starts.size > 5) {
          stays.delete(name)
          await go(name)
        }
      }
      // As every request does; this one sees which captures are gone.
      await catalogue.list()
      page = (await catalogue.listAfter(shown.at(-1) ?? '')).captures.slice(0, limit)
    }
    assert.equal(new Set(shown).size, shown.length, `SEED=${random.seed}: twice`)
    for (const name of stays) assert.ok(shown.includes(name), `SEED=${random.seed}: ${name} is missing`)
  }
})

test('changes are seen when the journal was removed or replaced, and a folder in its place is no obstacle', async () => {
  await using folder = await tempFolder()
  const paths = storePaths(folder.path)
  const damages: Readonly<Record<string, () => Promise<void>>> = {
    removed: () => rm(paths.changes),
    replaced: async () => {
      await writeFile(`${paths.changes}.other`, 'other\n')
      await rename(`${paths.changes}.other`, paths.changes)
    },
    'a folder': async () => {
      await rm(paths.changes)
      await mkdir(paths.changes)
    },
  }
  await using writer = await StoreWriter.open(folder.path)
  const catalogue = new CaptureCatalogue(paths, silent)
  for (const [what, damage] of Object.entries(damages)) {
    const name = what.replace(' ', '-')
    await writer.makeCapture(captureFacts(name, { state: 'active' }))
    await pause(100, 'the time stamp of the folder must be old enough to be trusted')
    assert.equal((await catalogue.find(name)).state, 'active')
    await damage()
    assert.equal((await catalogue.find(name)).state, 'active')
    await writer.changeRecord(name, (record) => ({ ...record, state: 'closed' }))
    assert.equal((await catalogue.find(name)).state, 'closed', what)
    await writer.changeRecord(name, (record) => ({ ...record, description: 'later' }))
    assert.equal((await catalogue.find(name)).description, 'later', what)
  }
  const journal = await readFile(paths.changes, 'utf8')
  assert.match(journal, /^\S+\n/, 'it is written again')
})
