// `capfleet store reindex` as a user runs it, on a store whose captures have no sieves.
import assert from 'node:assert/strict'
import { readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { reindexStore } from '../../../appliance/recorder/reindex.ts'
import { StoreWriter } from '../../../appliance/recorder/writer/store-writer.ts'
import { startRecorder } from '../../../appliance/recorder.ts'
import { withRecorder } from '../../../appliance/recorder-session.ts'
import { readCapture } from '../../../appliance/store/read-capture.ts'
import { entriesOf } from '../../../appliance/store/stored-capture.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { type ClientEnd, hostedClient, type TempClient } from '../../support/processes/client-process.ts'
import { tempFolder } from '../../support/temp-folder.ts'

let client: TempClient
before(async () => {
  client = await hostedClient()
})
after(() => client[Symbol.asyncDispose]())

const reindex = (store: string): Promise<ClientText> => storeCommand('reindex', '--store', store)

interface ClientText extends Omit<ClientEnd, 'stdout'> {
  readonly stdout: string
}

async function storeCommand(...args: readonly string[]): Promise<ClientText> {
  const { stdout, ...end } = await client.run(['store', ...args])
  return { ...end, stdout: stdout.toString() }
}

async function flip(path: string, at: number): Promise<void> {
  const bytes = await readFile(path)
  bytes.writeUInt8(bytes.readUInt8(at) ^ 0x5a, at)
  await writeFile(path, bytes)
}

/** A store with two captures: one of a few blocks, and one of one block. */
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
  assert.match((await reindex(store)).stderr, /^reindex: 0 blocks of 2 segments now have a sieve/m)
  await truncate(big, 30)
  await rm(small)
  const { status, stderr } = await reindex(store)
  assert.equal(status, 0, stderr)
  assert.match(
    stderr,
    /^reindex: [89] blocks of 2 segments now have a sieve, and [0-2] segments are new in the tables of addresses$/m,
  )
  assert.deepEqual([await readFile(big), await readFile(small)], written)
})

test('segments whose addresses are in no table get into one', async () => {
  await using folder = await tempFolder()
  const { store, big } = await makeStore(folder.path)
  const table = join(big, '../../00000000.addresses')
  const written = await readFile(table)
  await rm(table)
  const { status, stderr } = await reindex(store)
  assert.equal(status, 0, stderr)
  assert.match(stderr, /^reindex: 0 blocks of 2 segments now have a sieve, and 1 segments are new in /m)
  assert.deepEqual(await readFile(table), written)
})

test('a log of an earlier version gets the checksums without which no reader uses a table', async () => {
  await using folder = await tempFolder()
  const { store } = await makeStore(folder.path)
  const logged = (writer: StoreWriter) =>
    [...writer.captures.values()].flatMap((capture) =>
      capture.table.ports.flatMap((port) => Array.from(entriesOf(port), (segment) => ({ capture, segment }))),
    )
  await using writer = await StoreWriter.open(store)
  await writer.load()
  const before = logged(writer)
  for (const { capture, segment } of before) {
    await writer.correctSegment(capture, segment, (now) => ({ ...now, checksum: 0 }))
  }
  await reindexStore(writer, {})
  assert.deepEqual(logged(writer), before)
  assert.ok(before.every(({ segment }) => segment.checksum !== 0))
})

test('it may be stopped between captures, and the running recorder continues with the rest', async () => {
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
  assert.deepEqual(await client.reindex({}), { segments: 2n, blocks: 0n, newInTables: 0n, damages: [] })
})

test('an invalid index is left to store verify, and keeps no other segment without sieves', async () => {
  await using folder = await tempFolder()
  const { store, big, small } = await makeStore(folder.path)
  const written = await readFile(small)
  await rm(small)
  await writeFile(big.replace('.sieve', '.idx'), 'rotten')
  const { status, stderr } = await reindex(store)
  assert.equal(status, 0, stderr)
  assert.match(stderr, /^reindex: 1 blocks of 2 segments now have a sieve/m)
  assert.deepEqual(await readFile(small), written)
})

test('a record and a log that are damaged while the recorder runs are found, and written again', async () => {
  await using folder = await tempFolder()
  const { store } = await makeStore(folder.path)
  await withRecorder(store, async (recorder) => {
    await recorder.verify(false, {})
    const path = join(store, 'captures', 'big')
    const files = ['capture.json', 'segments.log'].map((name) => join(path, name))
    for (const file of files) await flip(file, 80)
    for (const repair of [false, true]) {
      const { findings } = await recorder.verify(repair, {})
      assert.deepEqual(
        findings.map(({ capture, kind, isRepaired }) => [capture, kind, isRepaired]),
        [
          ['big', 'record-damaged', repair],
          ['big', 'record-damaged', repair],
        ],
      )
      for (const file of files)
        assert.ok(
          findings.some(({ message }) => message.includes(file)),
          file,
        )
    }
    assert.deepEqual((await recorder.verify(false, {})).findings, [])
  })
})

test('packets that are marked as lost are named again, without advice that cannot help', async () => {
  await using folder = await tempFolder()
  const { store, big } = await makeStore(folder.path)
  await flip(big.replace('.sieve', '.pcap'), 5_000)
  const found = await storeCommand('verify', '--store', store)
  assert.deepEqual([found.status, found.stdout.split('\t').slice(0, 2)], [1, ['big', 'block-damaged']])
  assert.match(found.stderr, /run it with --repair/)
  const repaired = await storeCommand('verify', '--store', store, '--repair')
  assert.equal(repaired.status, 0, repaired.stderr)
  const again = await storeCommand('verify', '--store', store)
  assert.match(again.stdout, /^big\tblock-damaged\tlost before\tmarked\t/)
  assert.match(again.stderr, /findings that remain \(listed above\): 1; what is lost cannot be repaired/)
  // Applying the same change again restores the bytes.
  await flip(big.replace('.sieve', '.pcap'), 5_000)
  const readable = await storeCommand('verify', '--store', store, '--repair')
  assert.match(readable.stdout, /^big\tblock-readable\t[1-9]\d* packets can be read again\trepaired\t/)
  assert.equal(readable.status, 0, readable.stderr)
  const whole = await storeCommand('verify', '--store', store)
  assert.deepEqual([whole.status, whole.stdout], [0, ''])
})

test('a segment in neither log nor index is rediscovered by its packets', async () => {
  await using folder = await tempFolder()
  const { store, big } = await makeStore(folder.path)
  const index = await readFile(big.replace('.sieve', '.idx'))
  const tableOf = async () =>
    (await readCapture(join(store, 'captures', 'big'), 'big', { isWritten: false }))?.table
  const before = (await tableOf())?.portOf(0)?.newest
  await truncate(join(store, 'captures', 'big', 'segments.log'), 64)
  await rm(big.replace('.sieve', '.idx'))
  assert.equal((await tableOf())?.damagedSegments, 0)
  for (const [options, status] of [
    [[], 1],
    [['--repair'], 0],
  ] as const) {
    const found = await storeCommand('verify', '--store', store, ...options)
    assert.equal(found.status, status, found.stdout)
    assert.match(found.stdout, /^big\tindex-rebuilt\tno packet lost\t/m)
    assert.deepEqual((await tableOf())?.portOf(0)?.newest?.packets, before?.packets)
  }
  assert.deepEqual(await readFile(big.replace('.sieve', '.idx')), index)
  assert.equal((await storeCommand('verify', '--store', store)).stdout, '')
})

test('what was marked as lost and can be read again counts again', async () => {
  await using folder = await tempFolder()
  const { store, big } = await makeStore(folder.path)
  const packets = big.replace('.sieve', '.pcap')
  await rename(packets, `${packets}.elsewhere`)
  assert.equal((await storeCommand('verify', '--store', store, '--repair')).status, 0)
  assert.match(
    (await storeCommand('verify', '--store', store)).stdout,
    /^big\tsegment-missing\tlost before\tmarked\t/,
  )
  await rename(`${packets}.elsewhere`, packets)
  const repaired = await storeCommand('verify', '--store', store, '--repair')
  assert.equal(repaired.status, 0, repaired.stdout)
  assert.match(repaired.stdout, /^big\tlog-differs\tno packet lost\trepaired\t/m)
  const read = await readCapture(join(store, 'captures', 'big'), 'big', { isWritten: false })
  assert.deepEqual([read?.table.damagedSegments, read?.table.packets], [0, 2_000n])
  assert.equal((await storeCommand('verify', '--store', store)).stdout, '')
})

test('a store whose folder of captures is gone is refused, and nothing is made', async () => {
  await using folder = await tempFolder()
  const { store } = await makeStore(folder.path)
  const captures = join(store, 'captures')
  await rename(captures, `${captures}.elsewhere`)
  const { status, stderr } = await storeCommand('verify', '--store', store)
  assert.equal(status, 1)
  assert.match(stderr, /has lost its folder captures: mount or restore it/)
  await assert.rejects(stat(captures), { code: 'ENOENT' })
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
  const { status, stderr } = await reindex(join(folder.path, 'misspelt'))
  assert.equal(status, 1)
  assert.match(stderr, /there is no store at \S*misspelt; correct --store \[bad-parameter\]/)
})
