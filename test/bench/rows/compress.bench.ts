import { command, download, shellLine } from '../sides/contenders.ts'
import type { Row, WorkloadMaker } from './row.ts'

const CAPTURE = 'bench'

/** A whole capture compressed at its source, compared with the command line tool over the same file. */
export const compressions: readonly Row[] = [
  {
    name: 'fast-gzip',
    what: '`Compression=fast`, gzip -1; by processor time',
    floor: 5,
    goal: 7,
    judgedBy: 'cpu',
    make: compression('fast', ['gzip', '-1', '-c'], 'gzip -dc'),
  },
  {
    name: 'fast-pigz',
    what: '`Compression=fast`, pigz -1 -p2',
    floor: 4,
    goal: 6,
    make: compression('fast', ['pigz', '-1', '-p2', '-c'], 'gzip -dc'),
  },
  {
    name: 'gzip-6',
    what: '`Compression=6`, pigz -6 -p2',
    floor: 1.5,
    goal: 2.2,
    make: compression('6', ['pigz', '-6', '-p2', '-c'], 'gzip -dc'),
  },
  {
    name: 'gzip-best',
    what: '`Compression=best`, pigz -9 -p2',
    floor: 1,
    goal: 1.5,
    make: compression('best', ['pigz', '-9', '-p2', '-c'], 'gzip -dc'),
  },
  {
    name: 'zstd',
    what: '`Compression=zstd`, zstd -3 -T2',
    floor: 1,
    goal: 1.3,
    make: compression('zstd', ['zstd', '-3', '-T2', '-q', '-c'], 'zstd -dc'),
  },
]

function compression(value: string, tool: readonly [string, ...string[]], decoder: string): WorkloadMaker {
  return async ({ inputs, fleet }) => {
    const { paths, traffic } = await inputs.single()
    const [path = ''] = paths
    await fleet.importFile(0, CAPTURE, path)
    const target = `/api/v1/pcap/single?StreamName=${CAPTURE}&Compression=${value}`
    const ours = download(value, await fleet.device(0), target, decoder)
    const words = [...tool, path] as const
    const peer = command(tool.slice(0, 2).join(' '), words, `${shellLine(words)} | ${decoder}`)
    return { inputBytes: traffic.bytes, ours, peer }
  }
}
