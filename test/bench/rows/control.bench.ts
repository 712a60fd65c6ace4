import { shellOutput } from '../report/measure-command.ts'
import { shellLine } from '../sides/contenders.ts'
import { cpuSeconds, type ProxyName, type ProxyWorld } from '../sides/proxy-world.ts'
import type { Contender, Row, WorkloadMaker } from './row.ts'

const SECONDS = 3
const PATH = '/devices/d0/api/v1/system/version'
/**
 * Calls per side. Uncompiled code takes several times as long, and V8 continues to improve compiled code for more than
 * 100,000 calls; a fixed time would not do on a busy machine.
 */
const WARM_UP_CALLS = 150_000

/**
 * Small calls that are passed to a device, sent by wrk: one process each, connections kept on both sides, the same
 * device. We authenticate callers and write an access log; nginx writes one too, haproxy none. Each side's figures are
 * the seconds of 1,000 calls and the processor seconds of the proxy for them: the ratios compare the rates of one
 * process each, and the processor time per call.
 */
export const controls: readonly Row[] = [
  { name: 'control-1', what: 'small calls on a connection, nginx', make: against('nginx-control', 1) },
  { name: 'control-32', what: 'small calls on 32 connections, nginx', make: against('nginx-control', 32) },
  {
    name: 'control-haproxy-32',
    what: 'the same, haproxy',
    needs: { haproxy: 'haproxy', wrk: 'wrk' },
    make: against('haproxy', 32),
  },
  { name: 'control-http-proxy-32', what: 'the same, http-proxy', make: against('http-proxy', 32) },
]

function against(name: ProxyName, connections: number): WorkloadMaker {
  return async ({ proxies }) => {
    const world = await proxies()
    for (const proxy of ['capfleet', name] as const) await warmUp(world, proxy)
    const ours = calls(world, 'capfleet', connections)
    const peer = calls(world, name, connections)
    return { inputBytes: 0, ours, peer }
  }
}

async function warmUp(world: ProxyWorld, name: ProxyName): Promise<void> {
  for (let made = 0; made < WARM_UP_CALLS; ) made += await call(world, name, 32)
}

function calls(world: ProxyWorld, name: ProxyName, connections: number): Contender {
  const { pid, url, credentials } = world.proxies[name]
  return {
    label: `${name} c=${connections}`,
    run: async () => {
      const cpuBefore = cpuSeconds(pid)
      const thousands = (await call(world, name, connections)) / 1000
      return {
        seconds: SECONDS / thousands,
        peakRssMiB: 0,
        cpuSeconds: (cpuSeconds(pid) - cpuBefore) / thousands,
      }
    },
    pid,
    output: () => shellOutput(shellLine(['curl', '-fsS', '-u', credentials, url + PATH])),
  }
}

/** Resolves with the number of calls that were made in SECONDS. */
async function call(world: ProxyWorld, name: ProxyName, connections: number): Promise<number> {
  const { url, credentials } = world.proxies[name]
  const header = `authorization: Basic ${btoa(credentials)}`
  const output = await shellOutput(
    shellLine(['wrk', '-t1', `-c${connections}`, `-d${SECONDS}s`, '-H', header, url + PATH]),
  )
  const made = Number(/(\d+) requests in/.exec(output)?.[1])
  if (!(made > 0) || /Non-2xx/.test(output)) throw new Error(`wrk says: ${output}`)
  return made
}
