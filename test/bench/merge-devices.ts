import { tempFolder } from '../support/temp-folder.ts'
import type { BenchInput } from './bench-inputs.ts'
import { download } from './contenders.ts'
import { cpuSeconds, startGateway, startScript } from './proxy-world.ts'
import type { BenchParts, Contender, Workload, WorkloadMaker } from './workload.ts'

/**
 * A merge of many devices by a gateway over HTTP, from socket to socket, against a process that only
 * receives the same streams and drops them. Both run until the bench ends.
 */
export function fromDevices(count: number, burstPackets: number): WorkloadMaker {
  return async ({ inputs, owned }: BenchParts): Promise<Workload> => {
    const input = await inputs.interleaved(count, burstPackets)
    const folder = owned.use(await tempFolder()).path
    const upstream = await startScript('files-upstream.ts', input.paths, owned)
    const devices = input.paths.map((_, index) => `${upstream.url}/d${index}`)
    const gateway = await startGateway(folder, devices, owned)
    const receiver = await startScript('body-receiver.ts', devices, owned)
    return {
      inputBytes: input.traffic.bytes,
      ours: withCpu(download('gateway merge', gateway, mergePath(input)), gateway.pid),
      peer: {
        ...withCpu(download('receiver', { ...receiver, credentials: 'u:p' }, '/'), receiver.pid),
        countPackets: async () => input.traffic.packets,
      },
    }
  }
}

function mergePath({ traffic: { firstNs, lastNs } }: BenchInput): string {
  return `/api/v1/pcap/timerange?TSBegin=${firstNs}&TSEnd=${lastNs + 1n}&TSUnit=nanos`
}

function withCpu(contender: Contender, pid: number): Contender {
  const run = async () => {
    const before = cpuSeconds(pid)
    return { ...(await contender.run()), cpuSeconds: cpuSeconds(pid) - before }
  }
  return { ...contender, run }
}
