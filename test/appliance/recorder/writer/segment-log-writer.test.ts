import assert from 'node:assert/strict'
import { mkdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { dropsEntry, SegmentLogWriter } from '../../../../appliance/recorder/writer/segment-log-writer.ts'
import { type LogPosition, readSegmentLog } from '../../../../appliance/store/segment-log.ts'
import { SegmentTable } from '../../../../appliance/store/segment-table.ts'
import { entriesOf } from '../../../../appliance/store/stored-capture.ts'
import {
  LOG_ENTRY_BYTES,
  LOG_HEADER_BYTES,
  type LogEntry,
  LogEntryKind,
} from '../../../../native/segment-entry.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const IS_LONG = process.env.CAPFLEET_LONG === '1'

function segment(number: number, kind: LogEntryKind = LogEntryKind.finished): LogEntry {
  const minNs = BigInt(number) * 1_000n
  return {
    kind,
    port: number % 2,
    flags: 0,
    number,
    minNs,
    maxNs: minNs + 999n,
    packets: 10n,
    bytes: 1_000n,
    linkType: 1,
    snaplen: 262_144,
    sideBytes: 100,
    checksum: 7,
  }
}

const segments = (first: number, count: number): LogEntry[] =>
  Array.from({ length: count }, (_, i) => segment(first + i))
const numbersOf = (table: SegmentTable): number[] =>
  table.ports.flatMap((port) => Array.from(entriesOf(port), ({ number }) => number)).sort((a, b) => a - b)
const range = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i)

async function readAll(path: string): Promise<{ table: SegmentTable; position: LogPosition | undefined }> {
  const table = new SegmentTable()
  const position = await readSegmentLog(path, table)
  assert.notEqual(position, 'replaced')
  return { table, position: position as LogPosition | undefined }
}

test('a reader takes up what is new, and begins again when the log was compacted', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'segments.log')
  const table = new SegmentTable()
  const log = await SegmentLogWriter.create(path, table)
  const reader = new SegmentTable()
  let position = (await readSegmentLog(path, reader)) as LogPosition
  for (let first = 1; first < 400; first += 7) {
    await log.append(segments(first, 7), table)
    position = (await readSegmentLog(path, reader, position)) as LogPosition
    assert.deepEqual(numbersOf(reader), range(1, first + 6))
  }
  await log.append(
    range(1, 200).map((number) => segment(number, LogEntryKind.removed)),
    table,
  )
  position = (await readSegmentLog(path, reader, position)) as LogPosition
  assert.deepEqual([numbersOf(reader), reader.removed], [numbersOf(table), table.removed])
  await log.rewrite(table)
  assert.equal(await readSegmentLog(path, reader, position), 'replaced')
  const again = await readAll(path)
  assert.deepEqual([numbersOf(again.table), again.table.removed], [numbersOf(table), table.removed])
  assert.deepEqual(
    again.table.ports.map(({ lastNumber }) => lastNumber),
    table.ports.map(({ lastNumber }) => lastNumber),
  )
})

test('a log does not grow with what has gone', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'segments.log')
  const table = new SegmentTable()
  const log = await SegmentLogWriter.create(path, table)
  for (let number = 1; number <= 6_000; number += 20) {
    await log.append(segments(number, 20), table)
    if (number > 20) {
      await log.append(
        range(number - 20, 20).map((one) => segment(one, LogEntryKind.removed)),
        table,
      )
    }
  }
  const { length } = await readFile(path)
  assert.ok(length < 5_000 * LOG_ENTRY_BYTES, `${length} bytes for ${table.segments} segments`)
  const { table: read } = await readAll(path)
  assert.deepEqual([numbersOf(read), read.removed], [numbersOf(table), table.removed])
})

test('whatever single byte changes, no entry is invented and each loss is counted', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'segments.log')
  const table = new SegmentTable()
  const log = await SegmentLogWriter.create(path, table)
  await log.append(segments(1, 6), table)
  await log.append([segment(1, LogEntryKind.removed)], table)
  const sound = await readFile(path)
  const end = LOG_HEADER_BYTES + 7 * LOG_ENTRY_BYTES
  // Seven has no factor in common with the sizes of fields, so that each byte of a field gets its turn.
  const step = IS_LONG ? 1 : 7
  for (let at = Math.floor(Math.random() * step); at < sound.length; at += step) {
    const damaged = Buffer.from(sound)
    damaged.writeUInt8(damaged.readUInt8(at) ^ (1 << (at % 8)), at)
    await writeFile(path, damaged)
    const { table: read, position } = await readAll(path)
    const entry = Math.floor((at - LOG_HEADER_BYTES) / LOG_ENTRY_BYTES)
    assert.equal(position?.hasHeader, at >= LOG_HEADER_BYTES, `byte ${at}`)
    if (at < LOG_HEADER_BYTES || at >= end)
      assert.deepEqual([numbersOf(read), position?.damagedEntries], [range(2, 5), 0])
    else {
      const kept = entry === 6 ? range(1, 6) : range(2, 5).filter((number) => number !== entry + 1)
      assert.deepEqual(numbersOf(read), kept, `byte ${at}`)
      assert.equal(position?.damagedEntries, entry === 6 ? 0 : 1, `byte ${at}`)
    }
  }
})

test('a log that was cut anywhere returns its whole entries, and continues after them', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'segments.log')
  const table = new SegmentTable()
  const log = await SegmentLogWriter.create(path, table)
  await log.append(segments(1, 5), table)
  const sound = await readFile(path)
  for (let length = LOG_HEADER_BYTES; length < LOG_HEADER_BYTES + 6 * LOG_ENTRY_BYTES; length += 13) {
    await writeFile(path, sound)
    await truncate(path, length)
    const { table: read, position } = await readAll(path)
    const whole = Math.min(5, Math.floor((length - LOG_HEADER_BYTES) / LOG_ENTRY_BYTES))
    assert.deepEqual(numbersOf(read), range(1, whole))
    const next = await SegmentLogWriter.continue(path, { end: position?.end ?? 0, mustRewrite: false })
    await next.append([segment(whole + 1)], read)
    assert.deepEqual(numbersOf((await readAll(path)).table), range(1, whole + 1))
  }
})

test('an entry needs no new space: the room for it is made before', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'segments.log')
  const table = new SegmentTable()
  const log = await SegmentLogWriter.create(path, table)
  for (let number = 1; number <= 300; number++) {
    const { length } = await readFile(path)
    const position = (await readAll(path)).position as LogPosition
    assert.ok(length >= position.end + 16 * LOG_ENTRY_BYTES, `${length} bytes with ${number - 1} entries`)
    await log.append([segment(number)], table)
  }
})

test('there is no log, or none that can be read', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'segments.log')
  assert.equal((await readAll(path)).position, undefined)
  await writeFile(path, 'not a log')
  assert.equal((await readAll(path)).position, undefined)
  await rm(path)
})

test('a reader sees that the log was rewritten, even if the new file has the inode of the old one', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'segments.log')
  const table = new SegmentTable()
  const log = await SegmentLogWriter.create(path, table)
  await log.append(segments(1, 20), table)
  const reader = new SegmentTable()
  const position = (await readSegmentLog(path, reader)) as LogPosition
  const before = await stat(path)
  const other = join(folder.path, 'other.log')
  const rewritten = await SegmentLogWriter.create(other, table)
  await rewritten.append(segments(21, 20), table)
  await writeFile(path, await readFile(other))
  assert.equal((await stat(path)).ino, before.ino)
  assert.equal(await readSegmentLog(path, reader, position), 'replaced')
})

const LOSSES: Readonly<Record<string, (path: string) => Promise<void>>> = {
  removed: (path) => rm(path),
  'replaced by an older one': async (path) => {
    await writeFile(`${path}.older`, (await readFile(path)).subarray(0, 192))
    await rename(`${path}.older`, path)
  },
  cut: (path) => truncate(path, 192),
  'a folder': async (path) => {
    await rm(path)
    await mkdir(path)
  },
}
for (const [what, lose] of Object.entries(LOSSES))
  test(`a log that somebody has changed is written again, complete: ${what}`, async () => {
    await using folder = await tempFolder()
    const path = join(folder.path, 'segments.log')
    const table = new SegmentTable()
    const log = await SegmentLogWriter.create(path, table)
    await log.append(segments(1, 5), table)
    await lose(path)
    await log.append(segments(6, 1), table)
    assert.deepEqual(numbersOf((await readAll(path)).table), range(1, 6))
  })

test('a lost entry of drops leaves a mark, unless a later entry has the number', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'segments.log')
  const table = new SegmentTable()
  const log = await SegmentLogWriter.create(path, table)
  const drops = (packets: bigint): LogEntry => ({
    ...segment(0, LogEntryKind.drops),
    minNs: 0n,
    maxNs: 0n,
    linkType: 0,
    snaplen: 0,
    sideBytes: 0,
    checksum: 0,
    packets,
    bytes: 0n,
  })
  await log.append([segment(1), drops(7n), segment(2)], table)
  const sound = await readFile(path)
  for (let byte = 0; byte < LOG_ENTRY_BYTES; byte++) {
    for (const entry of [0, 1]) {
      const damaged = Buffer.from(sound)
      const at = LOG_HEADER_BYTES + entry * LOG_ENTRY_BYTES + byte
      damaged.writeUInt8(damaged.readUInt8(at) ^ 0x80, at)
      await writeFile(path, damaged)
      const { position } = await readAll(path)
      assert.equal(position?.mayLackDrops, entry === 1, `byte ${byte} of entry ${entry}`)
    }
  }
  await writeFile(path, sound)
  await log.append([drops(8n)], table)
  const later = await readFile(path)
  later.writeUInt8(1, LOG_HEADER_BYTES + LOG_ENTRY_BYTES + 20)
  await writeFile(path, later)
  assert.equal((await readAll(path)).position?.mayLackDrops, false)
  const lacking = new SegmentTable()
  lacking.noteLostDrops()
  const marked = await SegmentLogWriter.create(path, lacking)
  await marked.append([segment(1)], lacking)
  assert.equal((await readAll(path)).table.mayLackDrops, true)
  await marked.append([dropsEntry({ ring: 9n, disk: 0n }, lacking)], lacking)
  const { table: read } = await readAll(path)
  assert.deepEqual([read.mayLackDrops, read.drops], [true, { ring: 9n, disk: 0n }])
})
