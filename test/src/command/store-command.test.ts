// `capfleet store reindex` as a user runs it, on a store whose captures have no sieves.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { reindexStore } from '../../../appliance/recorder/reindex.ts'
import { StoreWriter } from '../../../appliance/recorder/store-writer.ts'
import { startRecorder } from '../../../appliance/recorder.ts'
import { withRecorder } from '../../../appliance/recorder-session.ts'
import { createLog } from '../../../src/base/log.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { tempFolder } from '../../support/temp-folder.ts'

function reindex(store: string) {
  const cli = join(REPOSITORY_ROOT, 'src/cli.ts')
  return spawnSync(process.execPath, [cli, 'store', 'reindex', '--store', store], { encoding: 'utf8' })
}

/** A store of two captures, of some blocks and of one. */
async function makeStore(folder: string) {
  const store = join(folder, 'store')
  await writeBigCapture(join(folder, 'big.pcap'), 2_000)
  await writeFile(join(folder, 'small.pcap'), makePcap([makePacket(1n, 'one', 60)]))
  await withRecorder(store, async (recorder) => {
    for (const name of ['big', 'small'])
      await recorder.importCapture({ name, files: [join(folder, `${name}.pcap`)] })
  })
  const sieves = ['big', 'small'].map((name) =>
    join(store, 'captures', name, 'cap0', '00000', '00000001.sieve'),
  )
  const [big = '', small = ''] = sieves
  return { store, big, small }
}

test('sieves that are missing or cut are made, and those that there are stay', async () => {
  await using folder = await tempFolder()
  const { store, big, small } = await makeStore(folder.path)
  const written = [await readFile(big), await readFile(small)]
  assert.match(reindex(store).stderr, /^reindex: 0 blocks of 2 segments have a sieve now/m)
  await truncate(big, 30)
  await rm(small)
  const { status, stderr } = reindex(store)
  assert.equal(status, 0, stderr)
  assert.match(stderr, /^reindex: [89] blocks of 2 segments have a sieve now that had none$/m)
  assert.deepEqual([await readFile(big), await readFile(small)], written)
})

test('it may be ended between captures, and the recorder that runs goes on with the rest', async () => {
  await using folder = await tempFolder()
  const { store, big, small } = await makeStore(folder.path)
  const written = [await readFile(big), await readFile(small)]
  await rm(big)
  await rm(small)
  const log = createLog('recorder', 'error')
  const ending = new AbortController()
  const done: bigint[] = []
  const onProgress = ({ inputBytes }: { readonly inputBytes: bigint }): void => {
    done.push(inputBytes)
    ending.abort(new Error('enough'))
  }
  {
    await using writer = await StoreWriter.open(store)
    await assert.rejects(reindexStore(writer, { signal: ending.signal, onProgress }), /enough/)
  }
  assert.equal(done.length, 1)
  await using owned = new AsyncDisposableStack()
  const recorder = await startRecorder({ storePath: store, log })
  owned.defer(() => recorder.close())
  const client = new RecorderClient(store)
  const { segments, blocks } = await client.reindex({})
  assert.equal(segments, 2n)
  assert.ok(blocks > 0n)
  assert.deepEqual([await readFile(big), await readFile(small)], written)
  assert.deepEqual(await client.reindex({}), { segments: 2n, blocks: 0n, damages: [] })
})

test('an index that is none is left to store verify, and keeps no other segment without sieves', async () => {
  await using folder = await tempFolder()
  const { store, big, small } = await makeStore(folder.path)
  const written = await readFile(small)
  await rm(small)
  await writeFile(big.replace('.sieve', '.idx'), 'rotten')
  const { status, stderr } = reindex(store)
  assert.equal(status, 0, stderr)
  assert.match(stderr, /^reindex: 1 blocks of 2 segments have a sieve now/m)
  assert.deepEqual(await readFile(small), written)
})

test('two at once make each sieve once', async () => {
  await using folder = await tempFolder()
  const { store, big, small } = await makeStore(folder.path)
  const written = [await readFile(big), await readFile(small)]
  await rm(big)
  await rm(small)
  await withRecorder(store, async (recorder) => {
    const [first, second] = await Promise.all([recorder.reindex({}), recorder.reindex({})])
    assert.ok(first.blocks + second.blocks > 1n)
    assert.ok(first.blocks === 0n || second.blocks === 0n)
  })
  assert.deepEqual([await readFile(big), await readFile(small)], written)
})

test('a folder that is no store is refused, and no store is made', async () => {
  await using folder = await tempFolder()
  const { status, stderr } = reindex(join(folder.path, 'misspelt'))
  assert.equal(status, 1)
  assert.match(stderr, /there is no store at \S*misspelt; correct --store \[bad-parameter\]/)
})
