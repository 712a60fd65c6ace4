/** A capture that is imported under the name of a deleted one is another one: what began with the old one leaves it alone. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { reindexStore } from '../../../appliance/recorder/reindex.ts'
import { SegmentRemover } from '../../../appliance/recorder/retention/segment-remover.ts'
import { verifyStore } from '../../../appliance/recorder/verify-store.ts'
import type { HeldCapture } from '../../../appliance/recorder/writer/held-capture.ts'
import { StoreWriter } from '../../../appliance/recorder/writer/store-writer.ts'
import { entriesOf, pathOf } from '../../../appliance/store/stored-capture.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const PACKETS = 90
/** Three packets fit. */
const SEGMENT_BYTES = 3_500
/** Imports of a name that is deleted at the same time. */
const ROUNDS = 10
const BEGIN_NS = 1_700_000_000_000_000_000n

interface Stage extends AsyncDisposable {
  readonly writer: StoreWriter
  /** Imports a capture whose packets all begin with this letter, at the same times as those of any other. */
  import(name: string, letter: string): Promise<void>
  entries(name: string): ReturnType<typeof entriesIn>
}

function entriesIn(writer: StoreWriter, name: string) {
  const capture = writer.captures.get(name)
  assert.ok(capture)
  return capture.table.ports.flatMap((port) => [...entriesOf(port)])
}

async function stage(): Promise<Stage> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const writer = parts.use(
    await StoreWriter.open(join(folder.path, 'store'), { segmentBytes: SEGMENT_BYTES }),
  )
  const owned = parts.move()
  return {
    writer,
    import: async (name, letter) => {
      const file = join(folder.path, `${name}.pcap`)
      const packets = Array.from({ length: PACKETS }, (_, index) =>
        makePacket(BEGIN_NS + BigInt(index), letter.repeat(1_000)),
      )
      await writeFile(file, makePcap(packets))
      await writer.importCapture({ name, files: [file] })
    },
    entries: (name) => entriesIn(writer, name),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Replaces the capture "z" when work on "a" begins: everything that is to be done has been listed by then. */
function replaceLater({ writer, import: imported }: Stage): { readonly isDone: () => boolean } {
  const first = writer.captures.get('a')
  assert.ok(first)
  const use = first.use.bind(first)
  let isDone = false
  first.use = async (work) => {
    first.use = use
    await writer.deleteCapture('z')
    await imported('z', 'n')
    isDone = true
    return await use(work)
  }
  return { isDone: () => isDone }
}

test('a reindex changes nothing of it', async () => {
  await using store = await stage()
  const { writer } = store
  await store.import('a', 'a')
  await store.import('z', 'o')
  for (const capture of writer.captures.values())
    for (const segment of entriesIn(writer, capture.record.name))
      await writer.correctSegment(capture, segment, (now) => ({ ...now, checksum: 0 }))
  const other = replaceLater(store)
  await reindexStore(writer, {})
  assert.ok(other.isDone())
  const entries = store.entries('z')
  assert.ok(entries.length > 20)
  assert.ok(entries.every(({ checksum }) => checksum !== 0))
  assert.deepEqual((await verifyStore(writer, { repair: false }, {})).findings, [])
})

test('a verification repairs nothing of it, and misses nothing of the old one', async () => {
  await using store = await stage()
  await store.import('a', 'a')
  await store.import('z', 'o')
  const other = replaceLater(store)
  const { findings } = await verifyStore(store.writer, { repair: true }, {})
  assert.ok(other.isDone())
  assert.deepEqual(findings, [])
  assert.deepEqual((await verifyStore(store.writer, { repair: false }, {})).findings, [])
  assert.equal(
    store.entries('z').reduce((sum, { packets }) => sum + packets, 0n),
    BigInt(PACKETS),
  )
})

test('files that wait for a reader are removed with their capture, and not from the next one', async () => {
  await using store = await stage()
  const { writer } = store
  await store.import('z', 'o')
  const capture = writer.captures.get('z')
  assert.ok(capture)
  const [segment] = store.entries('z')
  assert.ok(segment)
  const path = `${pathOf(capture.folder, segment)}.pcap`
  const reader = spawn('flock', ['-s', path, 'sh', '-c', 'echo reading; cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(reader.stdout, 'data')
  const events = { append: () => undefined }
  const ending = new AbortController()
  const remover = new SegmentRemover({ writer, events, pinMs: 3_600_000, signal: ending.signal })
  await remover.remove(capture, [{ name: 'z', port: 0, segment, storedNs: segment.maxNs }], 'space')
  assert.ok(remover.hasFilesOf(capture))
  await writer.deleteCapture('z')
  await store.import('z', 'n')
  reader.stdin.end()
  await once(reader, 'exit')
  await remover.retry()
  assert.ok(!remover.hasFilesOf(capture))
  assert.ok(existsSync(path))
  assert.deepEqual((await verifyStore(writer, { repair: false }, {})).findings, [])
})

test('the removal of segments of the old one fails', async () => {
  await using store = await stage()
  await store.import('z', 'o')
  const capture = store.writer.captures.get('z')
  assert.ok(capture)
  await store.writer.deleteCapture('z')
  await store.import('z', 'n')
  const before = store.entries('z')
  await assert.rejects(store.writer.dropSegments(capture, before), { code: 'unknown-capture' })
  await assert.rejects(store.writer.ageOut(capture), { code: 'unknown-capture' })
  assert.deepEqual(store.entries('z'), before)
})

test('a capture that appears while its name is being deleted is deleted whole, or stays', async () => {
  await using store = await stage()
  const { writer } = store
  const made = new Set<HeldCapture>()
  writer.watch((_name, capture) => {
    if (capture !== undefined) made.add(capture)
  })
  for (let round = 0; round < ROUNDS; round++) {
    let isImported = false
    const imported = store.import('c', 'c').finally(() => {
      isImported = true
    })
    do
      await writer
        .deleteCapture('c')
        .catch((error: unknown) => assert.equal(codeOf(error), 'unknown-capture'))
    while (!isImported)
    await imported
  }
  await writer.deleteCapture('c').catch((error: unknown) => assert.equal(codeOf(error), 'unknown-capture'))
  assert.equal(made.size, ROUNDS)
  for (const capture of made) assert.equal(await capture.use(() => Promise.resolve('goes on')), undefined)
})

function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown }).code
}
