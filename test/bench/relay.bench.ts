import { download } from './contenders.ts'
import { type Measure, measureCommand } from './measure-command.ts'
import { cpuSeconds, type ProxyName, ProxyWorld } from './proxy-world.ts'
import type { BenchParts, Contender, Workload, WorkloadMaker } from './workload.ts'

/** Even at 64 streams each is long enough that it is the bytes that cost, not the requests. */
const TOTAL_BYTES = 4_294_967_296
/** A megabyte each: here the requests cost. */
const SMALL_TOTAL_BYTES = 64 * 1_048_576

/** Downloads of one device through the gateway, against the proxies that one would use instead. */
export const relays: Readonly<Record<string, WorkloadMaker>> = {
  'relay-1': against('nginx', 1),
  'relay-4': against('nginx', 4),
  'relay-64': against('nginx', 64),
  'relay-small-64': against('nginx', 64, SMALL_TOTAL_BYTES),
  'relay-haproxy-1': against('haproxy', 1),
  'relay-haproxy-4': against('haproxy', 4),
  'relay-haproxy-64': against('haproxy', 64),
  'relay-http-proxy-4': against('http-proxy', 4),
}

function against(peer: ProxyName, streams: number, totalBytes = TOTAL_BYTES): WorkloadMaker {
  return async ({ proxies }: BenchParts): Promise<Workload> => {
    const world = await proxies()
    return {
      inputBytes: totalBytes,
      ours: relay(world, 'capfleet', streams, totalBytes),
      peer: relay(world, peer, streams, totalBytes),
    }
  }
}

/** All streams at once, each by a curl of its own. */
function relay(world: ProxyWorld, name: ProxyName, streams: number, totalBytes: number): Contender {
  const server = world.proxies[name]
  const bytes = Math.floor(totalBytes / streams)
  const urls = Array.from(
    { length: streams },
    (_, number) => server.url + ProxyWorld.streamPath(number, bytes),
  )
  const run = async (): Promise<Measure> => {
    const cpuBefore = cpuSeconds(server.pid)
    const startMs = performance.now()
    const options = { pid: server.pid }
    const curl = (url: string) => ['-fsS', '-u', server.credentials, url, '-o', '/dev/null']
    const measures = await Promise.all(urls.map((url) => measureCommand('curl', curl(url), options)))
    return {
      seconds: (performance.now() - startMs) / 1000,
      peakRssMiB: Math.max(...measures.map(({ peakRssMiB }) => peakRssMiB)),
      cpuSeconds: cpuSeconds(server.pid) - cpuBefore,
    }
  }
  const { countPackets } = download(name, server, ProxyWorld.streamPath(0, bytes))
  return { label: `${name} x${streams}`, run, countPackets }
}
