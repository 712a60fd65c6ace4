/** Sieves are made while a capture continues, without harm to its packets or to the sieves that it writes. */
import assert from 'node:assert/strict'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { captureWire, WITHOUT_WIRE } from '../../support/network/capture-wire.ts'
import { lossesIn } from '../../support/packets/flushed-packets.ts'
import { NumberedSender } from '../../support/packets/numbered-sender.ts'
import { storedNumbers } from '../../support/packets/stored-numbers.ts'
import { RecorderProcess } from '../../support/processes/recorder-process.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const PACKETS_PER_TICK = 10

async function sievesIn(folder: string): Promise<Map<string, Buffer>> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sieve')).sort()
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const)),
  )
}

test('sieves are created while a capture runs, which loses nothing', {
  skip: WITHOUT_WIRE,
}, async () => {
  await using folder = await tempFolder()
  await using wire = await captureWire()
  await using recorder = await RecorderProcess.start({ wire, folder: folder.path })
  const { client } = recorder
  const { name } = await client.startCapture('live')
  const capture = join(recorder.storePath, 'captures', name)
  const segments = join(capture, 'cap0', '00000')
  const first = join(segments, '00000001.sieve')
  let sent = 0
  {
    await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
    const finished = async (count: bigint) => (await client.reindex({})).segments >= count
    await eventually(() => finished(1n), { message: 'the first segment is finished' })
    const written = await readFile(first)
    // Each time, one more segment is being written.
    for (const count of [2n, 3n, 4n]) {
      await rm(first)
      const made = await client.reindex({})
      assert.ok(made.blocks > 0n)
      assert.deepEqual(made.damages, [])
      assert.deepEqual(await readFile(first), written)
      await eventually(() => finished(count), { message: `segment ${count} is finished` })
    }
    await sender[Symbol.asyncDispose]()
    sent = sender.sent
  }
  const { packets, drops } = await client.stopCapture(false)
  assert.deepEqual([packets, drops], [BigInt(sent), 0n])
  assert.deepEqual(lossesIn(await storedNumbers(capture), [{ from: 0, to: sent }]), [])
  const written = await sievesIn(segments)
  const count = BigInt(written.size)
  assert.deepEqual(await client.reindex({}), {
    segments: count,
    blocks: 0n,
    newInTables: 0n,
    damages: [],
  })
  for (const sieve of written.keys()) await rm(join(segments, sieve))
  assert.ok((await client.reindex({})).blocks >= count)
  assert.deepEqual(await sievesIn(segments), written, 'the capture wrote what is made of its blocks')
})
