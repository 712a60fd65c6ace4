import { startTempNginx } from '../../support/processes/temp-proxy.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import type { BenchInput } from '../inputs/bench-inputs.ts'
import { measureCommand } from '../report/measure-command.ts'
import type { BenchParts, Contender, Workload, WorkloadMaker } from '../rows/row.ts'
import { download, withCpuOf } from './contenders.ts'
import { mergecap } from './mergecap.ts'
import { startGateway, startScript } from './proxy-world.ts'

/**
 * "receiver": a process that receives the same streams as the gateway and drops them, which is the minimum cost of a
 * merge. "http-get": the same with Node's HTTP client. "nginx": passes them on unchanged to one client, which is the
 * minimum cost of any program that forwards what it receives.
 */
export type MergePeer = 'receiver' | 'http-get' | 'nginx'

const RECEIVERS = { receiver: 'body-receiver.ts', 'http-get': 'http-get-receiver.ts' } as const

/** A gateway that has been running is compiled. */
const WARM_UP_RUNS = 8

/** A merge of many devices by a gateway over HTTP, from socket to socket. All run until the bench ends. */
export function fromDevices(count: number, burstPackets: number, peer: MergePeer): WorkloadMaker {
  return async ({ inputs, owned }: BenchParts): Promise<Workload> => {
    const input = await inputs.interleaved(count, burstPackets)
    const folder = owned.use(await tempFolder()).path
    const upstream = await startScript('files-upstream.ts', input.paths, owned)
    const paths = input.paths.map((_, index) => `/d${index}`)
    const devices = paths.map((path) => upstream.url + path)
    const gateway = await startGateway(folder, devices, owned)
    const ours = download('gateway merge', gateway, mergePath(input))
    const theirs =
      peer === 'nginx'
        ? await throughNginx(upstream.url, paths, owned)
        : await receivedBy(peer, devices, owned)
    for (let run = 0; run < WARM_UP_RUNS; run += 1) {
      await ours.run()
      await theirs.run()
    }
    // The peers do not merge, so another program's merge is the reference.
    const { output } = mergecap(input)
    return { inputBytes: input.traffic.bytes, ours, peer: { ...theirs, output } }
  }
}

async function receivedBy(
  peer: keyof typeof RECEIVERS,
  devices: readonly string[],
  owned: AsyncDisposableStack,
): Promise<Contender> {
  const receiver = await startScript(RECEIVERS[peer], devices, owned)
  return download(peer, { ...receiver, credentials: 'u:p' }, '/')
}

/** All streams at once, with one curl. */
async function throughNginx(
  upstream: string,
  paths: readonly string[],
  owned: AsyncDisposableStack,
): Promise<Contender> {
  const { url, pid } = owned.use(await startTempNginx(upstream, 'streaming'))
  const downloads = paths.flatMap((path) => [`${url}${path}/api/v1/pcap/timerange`, '-o', '/dev/null'])
  const run = () => withCpuOf(pid, () => measureCommand('curl', ['-fsSZ', ...downloads], { pid }))
  return { label: 'nginx', run, output: () => Promise.resolve('') }
}

function mergePath({ traffic: { firstNs, lastNs } }: BenchInput): string {
  return `/api/v1/pcap/timerange?TSBegin=${firstNs}&TSEnd=${lastNs + 1n}&TSUnit=nanos`
}
