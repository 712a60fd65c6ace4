import { command, download, shellLine } from './contenders.ts'
import type { WorkloadMaker } from './workload.ts'

const CAPTURE = 'bench'

/** A whole capture compressed at its source, against the command line tool over the same file. */
export const compressions: Readonly<Record<string, WorkloadMaker>> = {
  'gzip-fast': compression('fast', ['pigz', '-1', '-p2', '-c'], 'gzip -dc'),
  'gzip-6': compression('6', ['pigz', '-6', '-p2', '-c'], 'gzip -dc'),
  zstd: compression('zstd', ['zstd', '-3', '-T2', '-q', '-c'], 'zstd -dc'),
}

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
