// The files of an export grow over many turns, and an interrupted turn leaves no trace in them.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import type { MadeFile } from '../../../../src/gateway/export/export-record.ts'
import { type Compression, encodingOf } from '../../../../src/shared/query/download/query-values.ts'
import { RecordSource } from '../../../../src/worker/files/record-source.ts'
import { ResultFiles, type ResultOptions, removeReplaced } from '../../../../src/worker/files/result-files.ts'
import { makePacket, makePcap, makeRecord } from '../../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../../../support/packets/pcap-records.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const HEADER = makePcap([])
const UNPACK = { none: 'cat', gzip: 'zcat', zstd: 'zstdcat' }
const NS = 1_790_000_000_000_000_000n

function somePackets(count: number, from = 0): readonly PcapRecord[] {
  return Array.from({ length: count }, (_, index) =>
    makePacket(NS + BigInt(from + index), `packet ${from + index}`, 40 + ((from + index) % 200)),
  )
}

/** Chunks of whole records, as a merge delivers them. */
async function* chunksOf(records: readonly PcapRecord[], perChunk: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < records.length; at += perChunk)
    yield Buffer.concat(records.slice(at, at + perChunk).map((record) => makeRecord(record)))
}

const nameOf = (part: number) => `file-${part}.pcap`

async function append(result: ResultFiles, records: readonly PcapRecord[]): Promise<void> {
  await using source = new RecordSource(chunksOf(records, 7), { nanoseconds: true })
  await result.append(source, { header: HEADER, nameOf })
}

function options(folder: string, more: Partial<ResultOptions> = {}): ResultOptions {
  return {
    folder,
    compression: 'none',
    partBytes: undefined,
    signal: new AbortController().signal,
    fileCount: 0,
    openFile: null,
    isHandedOver: true,
    ...more,
  }
}

/** The size of files that are not in a target yet. */
function pathsOf(made: readonly MadeFile[]): readonly string[] {
  return made.flatMap((file) => ('path' in file ? [file.path] : []))
}

describe('the files of an export', () => {
  test('have the times of their earliest and latest packet, in whatever order packets come', async () => {
    await using folder = await tempFolder()
    await using result = await ResultFiles.open(options(folder.path))
    const [a, b, c, d] = [1_999_999_999n, 5n, 3_000_000_000n, 2_000_000_001n].map((ns) =>
      makePacket(NS + ns, 'p'),
    )
    await append(result, [a, b, c, d] as readonly PcapRecord[])
    assert.deepEqual(
      [result.openFile?.firstNs, result.openFile?.lastNs],
      [String(NS + 5n), String(NS + 3_000_000_000n)],
    )
    await append(result, [makePacket(NS, 'q'), makePacket(NS + 4n, 'r')])
    assert.deepEqual(
      [result.openFile?.firstNs, result.openFile?.lastNs],
      [String(NS), String(NS + 3_000_000_000n)],
    )
  })

  for (const compression of ['none', 'fast', 'zstd'] as const satisfies readonly Compression[]) {
    test(`grow window by window, ${compression}, and are counted`, async () => {
      await using folder = await tempFolder()
      const all = somePackets(300)
      let state: Pick<ResultOptions, 'fileCount' | 'openFile'> = { fileCount: 0, openFile: null }
      for (let from = 0; from < all.length; from += 100) {
        // Each turn may be run by another worker.
        await using result = await ResultFiles.open(options(folder.path, { compression, ...state }))
        await append(result, all.slice(from, from + 100))
        await result.flush()
        const { fileCount, openFile } = result
        state = { fileCount, openFile }
      }
      const { openFile: file, fileCount } = state
      assert.ok(file !== null && fileCount === 0)
      const input = await readFile(file.path)
      const bytes = execFileSync(UNPACK[encodingOf(compression)], { input })
      assert.ok(bytes.equals(makePcap(all)), `${bytes.length} bytes`)
      const { name, packets, firstNs, lastNs, pcapBytes } = file
      assert.deepEqual(
        { name, packets, firstNs, lastNs, pcapBytes },
        {
          name: 'file-1.pcap',
          packets: '300',
          firstNs: String(NS),
          lastNs: String(NS + 299n),
          pcapBytes: String(bytes.length),
        },
      )
    })
  }

  test('continue in a copy if their writer may still run, and what it writes then is not in them', async () => {
    await using folder = await tempFolder()
    const [first, second] = [somePackets(50), somePackets(50, 50)]
    await using zombie = await ResultFiles.open(options(folder.path))
    await append(zombie, first)
    await zombie.flush()
    const checkpoint = { fileCount: 0, openFile: zombie.openFile }
    await append(zombie, somePackets(9, 1_000))
    await using result = await ResultFiles.open(options(folder.path, { ...checkpoint, isHandedOver: false }))
    await append(result, second)
    await append(zombie, somePackets(9, 2_000))
    await result.endFile()
    const made = result.takeMade()
    const bytes = await readFile(pathsOf(made)[0] ?? '')
    assert.ok(bytes.equals(makePcap([...first, ...second])), `${bytes.length} bytes`)
    await removeReplaced(checkpoint, made)
    assert.equal((await readdir(folder.path)).length, 1)
  })

  test('are cut before the packet that would make them too large, wherever it comes', async () => {
    const random = seededRandom()
    for (let round = 0; round < 40; round += 1) {
      await using folder = await tempFolder()
      const all = somePackets(random.integer(1, 200))
      const partBytes = random.integer(25, 3_000)
      await using result = await ResultFiles.open(options(folder.path, { partBytes }))
      const border = random.integer(0, all.length)
      await append(result, all.slice(0, border))
      await append(result, all.slice(border))
      await result.endFile()
      const made = result.takeMade()
      const parts = await Promise.all(
        pathsOf(made).map(async (path) => readPcap(await readFile(path)).records),
      )
      const seed = `SEED=${random.seed} round ${round}`
      assert.deepEqual(recordLines(parts.flat()), recordLines(all), seed)
      for (const [index, records] of parts.entries()) {
        const size = makePcap(records).length
        assert.ok(
          size <= partBytes || records.length === 1,
          `${seed}: part ${index} has ${size} of ${partBytes}`,
        )
        const next = parts[index + 1]?.[0]
        if (next !== undefined)
          assert.ok(size + makeRecord(next).length > partBytes, `${seed}: part ${index} had room`)
        assert.equal(made[index]?.packets, String(records.length), seed)
      }
    }
  })

  test('are there, with their header alone, when nothing comes', async () => {
    await using folder = await tempFolder()
    await using result = await ResultFiles.open(options(folder.path, { partBytes: 1_000_000 }))
    await append(result, [])
    await result.endFile()
    const made = result.takeMade()
    assert.deepEqual(await readFile(pathsOf(made)[0] ?? ''), HEADER)
    assert.deepEqual(made[0]?.firstNs, null)
  })
})
