import { command, download, shellLine } from './contenders.ts'
import type { BenchParts, Workload, WorkloadMaker } from './workload.ts'

const CAPTURE = 'bench'
const FILTER = 'tcp port 443'

/** Downloads of one stored capture from an appliance, against the usual tools over the same file. */
export const storedDownloads: Readonly<Record<string, WorkloadMaker>> = {
  scan: async (parts) => {
    const { device, path, inputBytes } = await storedCapture(parts)
    const ours = download('single', device, `/api/v1/pcap/single?StreamName=${CAPTURE}`)
    const copy = (target: string) => ['tcpdump', '-r', path, '-w', target] as const
    return { inputBytes, ours, peer: command('tcpdump', copy('/dev/null'), shellLine(copy('-'))) }
  },
  bpf: async (parts) => {
    const { device, path, inputBytes } = await storedCapture(parts)
    const query = new URLSearchParams({ StreamName: CAPTURE, FilterBPF: FILTER })
    const ours = download('FilterBPF', device, `/api/v1/pcap/single?${query}`)
    const filter = (target: string) => ['tcpdump', '-r', path, '-w', target, FILTER] as const
    return { inputBytes, ours, peer: command('tcpdump', filter('/dev/null'), shellLine(filter('-'))) }
  },
  timerange: onePercentAtNinety,
}

/** One percent of the time, where a tool that scans has read nine tenths before. */
async function onePercentAtNinety(parts: BenchParts): Promise<Workload> {
  const { device, path, inputBytes, firstNs, lastNs } = await storedCapture(parts)
  const spanNs = lastNs - firstNs
  const beginNs = firstNs + (spanNs * 90n) / 100n
  const endNs = firstNs + (spanNs * 91n) / 100n
  const ours = download(
    'timerange',
    device,
    `/api/v1/pcap/timerange?TSBegin=${beginNs}&TSEnd=${endNs}&TSUnit=nanos`,
  )
  const range = ['-F', 'nsecpcap', '-A', secondsText(beginNs), '-B', secondsText(endNs)]
  const cut = (target: string) => ['editcap', ...range, path, target] as const
  return { inputBytes, ours, peer: command('editcap -A -B', cut('/dev/null'), shellLine(cut('-'))) }
}

async function storedCapture({ inputs, fleet }: BenchParts) {
  const { paths, traffic } = await inputs.single()
  const [path = ''] = paths
  await fleet.importFile(0, CAPTURE, path)
  const { firstNs, lastNs, bytes: inputBytes } = traffic
  return { device: await fleet.device(0), path, inputBytes, firstNs, lastNs }
}

function secondsText(ns: bigint): string {
  return `${ns / 1_000_000_000n}.${String(ns % 1_000_000_000n).padStart(9, '0')}`
}
