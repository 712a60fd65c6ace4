import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { SplitFiles, splitBytes } from '../../../../../src/client/command/output/split-files.ts'
import { makePacket, makePcap, makeRecord } from '../../../../support/packets/packet-maker.ts'
import { tempFolder } from '../../../../support/temp-folder.ts'

const MAX = 300_000
const RECORDS = Array.from({ length: 30 }, (_, index) =>
  makeRecord(makePacket(BigInt(index), `packet ${index}`, 60_000)),
)
const HEADER = makePcap([])
const FILE = Buffer.concat([HEADER, ...RECORDS])

test('sizes are decimal or binary, and any packet must fit', () => {
  assert.deepEqual(['500MB', '1GiB', '300000', '2g', '1TB'].map(splitBytes), [
    5e8,
    2 ** 30,
    300_000,
    2e9,
    1e12,
  ])
  for (const wrong of ['', '1', '10kB', 'MB', '-5MB', '1.5GB', '5PB']) {
    assert.throws(() => splitBytes(wrong), /--split must be a size/, wrong)
  }
})

test('each file begins with the header and ends with a packet; together they are the whole', async () => {
  await using folder = await tempFolder()
  await using files = await SplitFiles.open(join(folder.path, 'day.pcap'), MAX)
  await files.write([HEADER, RECORDS[0] ?? HEADER])
  await files.write(RECORDS.slice(1, 20))
  await files.write(RECORDS.slice(20))
  assert.equal(files.bytes, FILE.length)
  assert.ok((await buffer(files.kept())).equals(FILE))
  await files.finish()
  const names = (await readdir(folder.path)).sort()
  assert.equal(names[0], 'day-0001.pcap')
  const parts = await Promise.all(names.map((name) => readFile(join(folder.path, name))))
  assert.ok(parts.every((part) => part.length <= MAX && part.subarray(0, 24).equals(HEADER)))
  const size = RECORDS[0]?.length ?? 0
  assert.ok(parts.every((part) => (part.length - 24) % size === 0))
  assert.ok(Buffer.concat([HEADER, ...parts.map((part) => part.subarray(24))]).equals(FILE))
})

test('a big-endian file is cut between its packets too', async () => {
  await using folder = await tempFolder()
  await using files = await SplitFiles.open(join(folder.path, 'day.pcap'), MAX)
  const packets = Array.from({ length: 12 }, (_, index) => makePacket(BigInt(index), '', 60_000))
  const whole = makePcap(packets, { isBigEndian: true })
  await files.write([whole])
  await files.finish()
  const names = (await readdir(folder.path)).sort()
  const parts = await Promise.all(names.map((name) => readFile(join(folder.path, name))))
  assert.deepEqual(
    parts.map((part) => (part.length - 24) % 60_016),
    [0, 0, 0],
  )
  assert.ok(Buffer.concat([whole.subarray(0, 24), ...parts.map((part) => part.subarray(24))]).equals(whole))
})

test('takes the place of an earlier download that had more files', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'day.pcap')
  for (const records of [RECORDS, RECORDS.slice(0, 5)]) {
    await using files = await SplitFiles.open(path, MAX)
    await files.write([HEADER, ...records])
    await files.finish()
    await writeFile(join(folder.path, 'day-2024.pcap'), 'of somebody else')
  }
  assert.deepEqual((await readdir(folder.path)).sort(), ['day-0001.pcap', 'day-0002.pcap', 'day-2024.pcap'])
})

test('continues from any packet, including one of an earlier file', async () => {
  const size = RECORDS[0]?.length ?? 0
  for (const packets of [0, 1, 4, 5, 11, 30]) {
    await using folder = await tempFolder()
    const path = join(folder.path, 'day.pcap')
    {
      await using files = await SplitFiles.open(path, MAX)
      await files.write([HEADER, ...RECORDS])
    }
    await using files = await SplitFiles.open(path, MAX)
    assert.equal(files.bytes, FILE.length)
    await files.truncate(24 + packets * size)
    assert.equal(files.bytes, 24 + packets * size)
    if (packets < RECORDS.length) await files.write(RECORDS.slice(packets))
    assert.ok((await buffer(files.kept())).equals(FILE), `${packets}`)
    await files.truncate(0)
    assert.equal(files.bytes, 0)
    await files.write([HEADER, ...RECORDS])
    assert.ok((await buffer(files.kept())).equals(FILE), `${packets}, anew`)
    await files.finish()
    for (const name of await readdir(folder.path)) {
      const part = await readFile(join(folder.path, name))
      assert.ok(part.subarray(0, 24).equals(HEADER) && (part.length - 24) % size === 0, `${packets}: ${name}`)
    }
  }
})
