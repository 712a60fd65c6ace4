import { fileURLToPath } from 'node:url'
import type { BenchInput } from './bench-inputs.ts'
import { command, download, shellLine } from './contenders.ts'
import { shellOutput } from './measure-command.ts'
import { fromDevices } from './merge-devices.ts'
import type { Contender, WorkloadMaker } from './workload.ts'

const MERGE_FILES = fileURLToPath(new URL('merge-files.ts', import.meta.url))
const FLEET_CAPTURE = 'bench-fleet'
const DEVICES = 3

/** The gateway's merge against mergecap: over files, and from three appliances through the gateway. */
export const merges: Readonly<Record<string, WorkloadMaker>> = {
  'merge-4': overFiles(4, 1),
  'merge-16': overFiles(16, 1),
  'merge-256': overFiles(256, 1),
  'merge-bursts-256': overFiles(256, 64),
  'merge-bursts': overFiles(4, 64),
  'merge-8-devices': fromDevices(8, 64, 'receiver'),
  'merge-8-devices-interleaved': fromDevices(8, 1, 'receiver'),
  'merge-8-http-get': fromDevices(8, 64, 'http-get'),
  'merge-8-nginx': fromDevices(8, 64, 'nginx'),
  'merge-fleet': overFleet(),
  'merge-fleet-gzip-fast': overFleet({ word: 'fast', tool: 'pigz -1 -p2 -c', decoder: 'gzip -dc' }),
  'merge-fleet-zstd': overFleet({ word: 'zstd', tool: 'zstd -3 -T2 -q -c', decoder: 'zstd -dc' }),
}

function overFiles(count: number, burstPackets: number): WorkloadMaker {
  return async ({ inputs }) => {
    const input = await inputs.interleaved(count, burstPackets)
    return { inputBytes: input.traffic.bytes, ours: mergeFiles(input), peer: mergecap(input) }
  }
}

interface Compressed {
  /** Of `Compression`. */
  readonly word: string
  /** Compresses as well, as shell words. */
  readonly tool: string
  readonly decoder: string
}

/** The gateway over three appliances. */
function overFleet(compressed?: Compressed): WorkloadMaker {
  return async ({ inputs, fleet }) => {
    const input = await inputs.interleaved(DEVICES)
    for (const [index, path] of input.paths.entries()) await fleet.importFile(index, FLEET_CAPTURE, path)
    const { firstNs, lastNs, bytes } = input.traffic
    const path = `/api/v1/pcap/timerange?TSBegin=${firstNs}&TSEnd=${lastNs + 1n}&TSUnit=nanos`
    const gateway = await fleet.gateway()
    if (compressed === undefined) {
      return { inputBytes: bytes, ours: download('gateway', gateway, path), peer: mergecap(input) }
    }
    const { word, tool, decoder } = compressed
    const ours = download(`gateway ${word}`, gateway, `${path}&Compression=${word}`, decoder)
    return { inputBytes: bytes, ours, peer: mergecapInto(input, tool, decoder) }
  }
}

/** src/pcap over the files, in a process of its own that tells its time itself. */
function mergeFiles({ paths }: BenchInput): Contender {
  const line = shellLine([process.execPath, MERGE_FILES, ...paths])
  return {
    label: 'src/pcap',
    run: async () => {
      const { seconds, cpuSeconds, peakRssMiB } = JSON.parse(await shellOutput(line))
      return { seconds, cpuSeconds, peakRssMiB }
    },
    countPackets: async () => JSON.parse(await shellOutput(line)).packets,
  }
}

function mergecap(input: BenchInput): Contender {
  return command('mergecap', mergecapWords(input, '/dev/null'), shellLine(mergecapWords(input, '-')))
}

function mergecapInto(input: BenchInput, tool: string, decoder: string): Contender {
  const line = `${shellLine(mergecapWords(input, '-'))} | ${tool}`
  return command(`mergecap | ${tool}`, ['sh', '-c', `${line} > /dev/null`], `${line} | ${decoder}`)
}

function mergecapWords({ paths }: BenchInput, target: string): readonly [string, ...string[]] {
  return ['mergecap', '-F', 'nsecpcap', '-w', target, ...paths]
}
