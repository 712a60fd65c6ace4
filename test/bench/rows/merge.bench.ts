import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempFolder } from '../../support/temp-folder.ts'
import type { BenchInput } from '../inputs/bench-inputs.ts'
import { shellOutput } from '../report/measure-command.ts'
import { command, download, inBothFormats, packetsOf, shellLine } from '../sides/contenders.ts'
import { ENGINE_RUN, importAsStreams } from '../sides/engine-run.ts'
import { fromDevices } from '../sides/merge-devices.ts'
import { mergecap, mergecapInto } from '../sides/mergecap.ts'
import type { BenchParts, Contender, Row, WorkloadMaker } from './row.ts'

const MERGE_FILES = fileURLToPath(new URL('../sides/merge-files.ts', import.meta.url))
const FLEET_CAPTURE = 'bench-fleet'
const DEVICES = 3
/** How many files a process may open by default. */
const OPEN_FILES = 1_024

/** The gateway's merge compared with mergecap: over files, and from devices through the gateway. */
export const merges: readonly Row[] = [
  {
    name: 'merge-4',
    what: '4 interleaved files, mergecap',
    floor: 3,
    goal: 4,
    make: overFiles(4, 1),
    // As streams of a store.
    engine: { work: {}, input: (inputs) => inputs.interleaved(4) },
  },
  { name: 'merge-16', what: '16 interleaved files, mergecap', floor: 2.5, goal: 4, make: overFiles(16, 1) },
  {
    name: 'merge-bursts-4',
    what: '4 files of bursts, mergecap',
    floor: 3.5,
    goal: 5,
    make: overFiles(4, 64),
  },
  { name: 'merge-256', what: '256 interleaved files, mergecap', make: overFiles(256, 1) },
  { name: 'merge-bursts-256', what: '256 files of bursts, mergecap', make: overFiles(256, 64) },
  { name: 'merge-1000', what: '1,000 files, mergecap', floor: 8, goal: 20, make: overFiles(1_000, 1) },
  {
    name: 'merge-10000',
    what: '10,000 captures of a store with 1,024 open files, mergecap with all files open',
    floor: 8,
    goal: 20,
    make: overCaptures(10_000),
  },
  { name: 'merge-8-receiver', what: '8 devices, our client alone', make: fromDevices(8, 64, 'receiver') },
  {
    name: 'merge-8-interleaved',
    what: '8 devices without bursts, our client alone',
    make: fromDevices(8, 1, 'receiver'),
  },
  {
    name: 'merge-8-http-get',
    what: '8 devices, received by http.get and dropped',
    floor: 0.75,
    goal: 1,
    make: fromDevices(8, 64, 'http-get'),
  },
  {
    name: 'merge-8-nginx',
    what: '8 devices, nginx passing 8 streams on',
    floor: 0.6,
    goal: 0.75,
    make: fromDevices(8, 64, 'nginx'),
  },
  { name: 'merge-fleet', what: '3 appliances by the gateway, mergecap over files', make: overFleet() },
  {
    name: 'merge-fleet-fast',
    what: 'the same with `Compression=fast`, mergecap and pigz -1 -p2',
    make: overFleet({ word: 'fast', tool: 'pigz -1 -p2 -c', decoder: 'gzip -dc' }),
  },
  {
    name: 'merge-fleet-zstd',
    what: 'the same with `Compression=zstd`, mergecap and zstd -3 -T2',
    make: overFleet({ word: 'zstd', tool: 'zstd -3 -T2 -q -c', decoder: 'zstd -dc' }),
  },
  {
    name: 'pcapng-merge',
    what: '`Format=pcapng` of 3 appliances by the gateway, the same in PCAP; by processor time',
    floor: 0.9,
    goal: 1,
    judgedBy: 'cpu',
    make: fleetInPcapng(),
  },
]

function overFiles(count: number, burstPackets: number): WorkloadMaker {
  return async ({ inputs }) => {
    const input = await inputs.interleaved(count, burstPackets)
    return { inputBytes: input.traffic.bytes, ours: mergeFiles(input), peer: mergecap(input) }
  }
}

/** The engine over a store with more captures than it may open files. mergecap rejects them, unless it may open all. */
function overCaptures(count: number): WorkloadMaker {
  return async ({ inputs, owned }) => {
    const input = await inputs.interleaved(count)
    const store = owned.use(await tempFolder()).path
    await importAsStreams(store, input.paths)
    const files = dirname(input.paths[0] ?? '')
    // Their paths together are longer than one argument of a shell may be.
    const engine = (words: string) => `ulimit -n ${OPEN_FILES} && ${ENGINE_RUN} ${words} '${store}'/*/cap0`
    const peer = (target: string) =>
      `ulimit -n "$(ulimit -Hn)" && mergecap -F nsecpcap -w ${target} '${files}/${input.name}'.*.pcap`
    return {
      inputBytes: input.traffic.bytes,
      ours: command('engine', ['bash', '-c', engine('')], engine('--write')),
      peer: command('mergecap', ['bash', '-c', peer('/dev/null')], peer('-')),
    }
  }
}

interface Compressed {
  /** Values of `Compression`. */
  readonly word: string
  /** Compresses equally well; as shell words. */
  readonly tool: string
  readonly decoder: string
}

/** The gateway over three appliances. */
function overFleet(compressed?: Compressed): WorkloadMaker {
  return async (parts) => {
    const { input, gateway, path } = await importedFleet(parts)
    const { bytes } = input.traffic
    if (compressed === undefined) {
      return { inputBytes: bytes, ours: download('gateway', gateway, path), peer: mergecap(input) }
    }
    const { word, tool, decoder } = compressed
    const ours = download(`gateway ${word}`, gateway, `${path}&Compression=${word}`, decoder)
    return { inputBytes: bytes, ours, peer: mergecapInto(input, tool, decoder) }
  }
}

/** The same in both formats. */
function fleetInPcapng(): WorkloadMaker {
  return async (parts) => {
    const { input, gateway, path } = await importedFleet(parts)
    return { inputBytes: input.traffic.bytes, ...inBothFormats(gateway, path) }
  }
}

async function importedFleet({ inputs, fleet }: BenchParts) {
  const input = await inputs.interleaved(DEVICES)
  for (const [index, path] of input.paths.entries()) await fleet.importFile(index, FLEET_CAPTURE, path)
  const { firstNs, lastNs } = input.traffic
  const path = `/api/v1/pcap/timerange?TSBegin=${firstNs}&TSEnd=${lastNs + 1n}&TSUnit=nanos`
  return { input, gateway: await fleet.gateway(), path }
}

/** src/gateway/pcap over the files, in a separate process that measures its own time. */
function mergeFiles({ paths }: BenchInput): Contender {
  const line = (mode: 'time' | 'write') => shellLine([process.execPath, MERGE_FILES, mode, ...paths])
  return {
    label: 'src/gateway/pcap',
    run: async () => JSON.parse(await shellOutput(line('time'))),
    output: () => packetsOf(line('write')),
  }
}
