import { type Measure, measureCommand } from '../report/measure-command.ts'
import { download } from '../sides/contenders.ts'
import { cpuSeconds, type ProxyName, ProxyWorld } from '../sides/proxy-world.ts'
import type { BenchParts, Contender, Row, Workload, WorkloadMaker } from './row.ts'

/** Even at 64 streams, each is so long that the bytes determine the cost, not the requests. */
const TOTAL_BYTES = 4_294_967_296
/** A megabyte each: here the requests determine the cost. */
const SMALL_TOTAL_BYTES = 64 * 1_048_576

/** Both sides are compared by this: the stream repeats itself. */
const COMPARED_BYTES = 64 * 1_048_576

/** Downloads from one device through the gateway, compared with the proxies that one would use instead. */
export const relays: readonly Row[] = [
  { name: 'relay-1', what: 'a stream, nginx proxy_pass', floor: 0.9, goal: 1, make: against('nginx', 1) },
  { name: 'relay-4', what: '4 streams, nginx proxy_pass', floor: 0.9, goal: 1, make: against('nginx', 4) },
  { name: 'relay-64', what: '64 streams, nginx proxy_pass', floor: 0.9, goal: 1, make: against('nginx', 64) },
  {
    name: 'relay-small-64',
    what: '64 streams of 1 MiB, nginx',
    make: against('nginx', 64, SMALL_TOTAL_BYTES),
  },
  ...[1, 4, 64].map((streams) => ({
    name: `relay-haproxy-${streams}`,
    what: `streams: ${streams}, haproxy`,
    needs: { haproxy: 'haproxy' },
    make: against('haproxy', streams),
  })),
  { name: 'relay-http-proxy-4', what: '4 streams, http-proxy', make: against('http-proxy', 4) },
]

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

/** All streams at once, each with its own curl. */
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
  const { output } = download(name, server, ProxyWorld.streamPath(0, Math.min(bytes, COMPARED_BYTES)))
  return { label: `${name} x${streams}`, pid: server.pid, run, output }
}
