/**
 * Merges PCAP files by src/pcap as the gateway merges streams: from memory, in chunks of 256 KiB, to
 * reused buffers that are thrown away. Prints `{"seconds", "packets", "peakRssMiB"}` of the best of
 * the later passes: a gateway runs already and is compiled.
 */
import { readFileSync } from 'node:fs'
import { commonHeader } from '../../src/pcap/common-header.ts'
import { PcapMerge } from '../../src/pcap/merge.ts'
import { MergeArena } from '../../src/pcap/merge-arena.ts'
import { PcapInput } from '../../src/pcap/pcap-input.ts'

/** What a socket of the gateway gives at most per read. */
const CHUNK_BYTES = 262_144
const LATER_PASSES = 3

const files = process.argv.slice(2).map((path) => ({ path, bytes: readFileSync(path) }))

async function* chunksOf(bytes: Buffer): AsyncGenerator<Buffer, void> {
  for (let at = 0; at < bytes.byteLength; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES)
}

async function mergeOnce() {
  const startMs = performance.now()
  const arena = new MergeArena(files.length)
  const inputs = await Promise.all(
    files.map(({ path, bytes }) => PcapInput.open(path, chunksOf(bytes), { arena })),
  )
  commonHeader(inputs)
  const merge = new PcapMerge(inputs)
  for await (const chunk of merge.chunks()) if (chunk.byteLength === 0) throw new Error('an empty chunk')
  return { seconds: (performance.now() - startMs) / 1000, packets: merge.totals.packets }
}

const { packets } = await mergeOnce()
let seconds = Number.POSITIVE_INFINITY
for (let pass = 0; pass < LATER_PASSES; pass++) seconds = Math.min(seconds, (await mergeOnce()).seconds)
const peakRssMiB = process.resourceUsage().maxRSS / 1024
process.stdout.write(`${JSON.stringify({ seconds, packets, peakRssMiB })}\n`)
