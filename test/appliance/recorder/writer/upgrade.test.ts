/**
 * A store of format 1 can be read as it is, and is upgraded in place without changing a packet, even if the upgrade is
 * killed at any moment.
 *
 *   UPGRADE_KILLS=<n>   how often; `npm run flips` sets 50
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { copyModel, type DamageModel, makeDamageModel } from '../../../support/disks/damage-model.ts'
import { readDamaged, recoverDamaged } from '../../../support/disks/damaged-copy.ts'
import { makeOld } from '../../../support/disks/old-store.ts'
import { pause } from '../../../support/pause.ts'
import { REPOSITORY_ROOT } from '../../../support/repository-files.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { tempFolder } from '../../../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../../../support/test-limits.ts'

const KILLS = Number(process.env.UPGRADE_KILLS ?? 3)
const BOOT_ID = 'this-boot'
const NOTHING_LOST = { mayLose: new Set<string>(), unflushed: false }
const SOUND = { lost: 0, corruptBlocks: 0, damagedCaptures: 0 }
const random = seededRandom()

let home: Awaited<ReturnType<typeof tempFolder>>
let model: DamageModel
before(async () => {
  home = await tempFolder()
  model = await makeDamageModel(home.path, BOOT_ID)
})
after(() => home[Symbol.asyncDispose]())

async function oldStore(name: string): Promise<string> {
  const path = join(home.path, name)
  await copyModel(model, path)
  await makeOld(path)
  return path
}

/** Paths of all segment files, relative to the store. */
async function segmentFiles(path: string): Promise<string[]> {
  const entries = await readdir(join(path, 'captures'), { recursive: true })
  return entries.filter((entry) => /\.(pcap|idx|tally|sieve)$/.test(entry)).sort()
}

test('an old store is read as it is, then upgraded without a segment being touched', async () => {
  const path = await oldStore('old')
  const files = await segmentFiles(path)
  assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
  assert.equal(await recoverDamaged(path, BOOT_ID), 0)
  assert.equal(await readFile(join(path, 'store.json'), 'utf8'), '{"format":2}\n')
  assert.deepEqual(await segmentFiles(path), files)
  for (const name of await readdir(join(path, 'captures'))) {
    const found = await readdir(join(path, 'captures', name))
    assert.deepEqual(found.filter((file) => !file.startsWith('cap0') && !/^cap\d$/.test(file)).sort(), [
      'capture.copy.json',
      'capture.json',
      'segments.log',
    ])
  }
  assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
  assert.equal(await recoverDamaged(path, BOOT_ID), 0, 'nothing is left to do')
})

test(`an upgrade that is killed ${KILLS} times loses nothing (SEED=${random.seed})`, {
  timeout: TEST_LIMIT_MS + KILLS * 20_000,
}, async () => {
  const script = [
    "const { StoreWriter } = await import('./appliance/recorder/writer/store-writer.ts')",
    'const writer = await StoreWriter.open(process.argv[1])',
    "process.stdout.write('open\\n')",
    'await writer.load()',
    "process.stdout.write('done\\n')",
    'setInterval(() => undefined, 1_000)',
  ].join('\n')
  for (let kill = 0; kill < KILLS; kill++) {
    const path = await oldStore(`killed-${kill}`)
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script, path], {
      cwd: REPOSITORY_ROOT,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    // Each round is killed a little later after the store was opened, up to the whole upgrade.
    await pause(random.integer(0, 30), 'it is killed at any moment')
    child.kill('SIGKILL')
    await once(child, 'exit')
    assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
    assert.equal(await recoverDamaged(path, BOOT_ID), 0)
    assert.deepEqual(await readDamaged(path, model, NOTHING_LOST), SOUND)
  }
})
