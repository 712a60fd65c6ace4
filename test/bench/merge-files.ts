/**
 * Merges PCAP files by src/pcap as the gateway merges streams, throws the result away and prints
 * `{"seconds", "packets", "peakRssMiB"}` of the second pass: a gateway runs already and is compiled.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { commonHeader } from '../../src/pcap/common-header.ts'
import { mergePcap } from '../../src/pcap/merge.ts'
import { PcapInput } from '../../src/pcap/pcap-input.ts'

/** What a socket of the gateway gives at most per read. */
const CHUNK_BYTES = 65_536

async function* chunksOf(path: string): AsyncGenerator<Buffer, void> {
  const file = openSync(path, 'r')
  try {
    for (;;) {
      const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES)
      const bytes = readSync(file, chunk, 0, CHUNK_BYTES, null)
      if (bytes === 0) return
      yield chunk.subarray(0, bytes)
    }
  } finally {
    closeSync(file)
  }
}

async function mergeOnce() {
  const startMs = performance.now()
  const inputs = await Promise.all(process.argv.slice(2).map((path) => PcapInput.open(path, chunksOf(path))))
  commonHeader(inputs)
  for await (const chunk of mergePcap(inputs)) if (chunk.byteLength === 0) throw new Error('an empty chunk')
  const packets = inputs.reduce((sum, input) => sum + input.totals.packets, 0)
  return { seconds: (performance.now() - startMs) / 1000, packets }
}

await mergeOnce()
const result = await mergeOnce()
const peakRssMiB = process.resourceUsage().maxRSS / 1024
process.stdout.write(`${JSON.stringify({ ...result, peakRssMiB })}\n`)
