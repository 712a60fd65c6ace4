import { shellLine } from './contenders.ts'
import { shellOutput } from './measure-command.ts'
import { cpuSeconds, type ProxyName, type ProxyWorld } from './proxy-world.ts'
import type { Contender, WorkloadMaker } from './workload.ts'

const SECONDS = 3
const PATH = '/devices/d0/api/v1/system/version'

/**
 * Small calls that are passed to a device, by wrk. Each side is given as the time of 1,000 calls; the
 * processor time beside it is the proxy's for them.
 */
export const controls: Readonly<Record<string, WorkloadMaker>> = {
  'control-1': against('nginx-control', 1),
  'control-32': against('nginx-control', 32),
  'control-http-proxy-32': against('http-proxy', 32),
}

function against(name: ProxyName, connections: number): WorkloadMaker {
  return async ({ proxies }) => {
    const world = await proxies()
    const ours = calls(world, 'capfleet', connections)
    const peer = calls(world, name, connections)
    // Code that is not compiled yet takes several times as long.
    for (const contender of [ours, peer]) await contender.run()
    return { inputBytes: 0, ours, peer }
  }
}

function calls(world: ProxyWorld, name: ProxyName, connections: number): Contender {
  const { url, pid, credentials } = world.proxies[name]
  const header = `authorization: Basic ${btoa(credentials)}`
  const wrk = shellLine(['wrk', '-t1', `-c${connections}`, `-d${SECONDS}s`, '-H', header, url + PATH])
  return {
    label: `${name} c=${connections}`,
    run: async () => {
      const cpuBefore = cpuSeconds(pid)
      const output = await shellOutput(wrk)
      const made = Number(/(\d+) requests in/.exec(output)?.[1])
      if (!(made > 0) || /Non-2xx/.test(output)) throw new Error(`wrk says: ${output}`)
      const thousands = made / 1000
      return {
        seconds: SECONDS / thousands,
        peakRssMiB: 0,
        cpuSeconds: (cpuSeconds(pid) - cpuBefore) / thousands,
      }
    },
    countPackets: () => Promise.resolve(0),
  }
}
