/**
 * `npm run bench:memory -- [--size-mib 4096] [--rate-mb 80]`: three appliances stream a range of that size through the
 * gateway's merge to a client that reads only this many megabytes per second. Prints the resident memory of gateway and
 * appliances along the way. Memory that grows with the streamed amount, instead of staying level, is a defect.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { BenchInputs } from '../inputs/bench-inputs.ts'
import { BenchFleet, type BenchServer } from '../sides/bench-fleet.ts'

const DEVICES = 3
const SAMPLE_MS = 250
const PRINTED_ROWS = 20

const { values } = parseArgs({
  options: { 'size-mib': { type: 'string', default: '4096' }, 'rate-mb': { type: 'string', default: '80' } },
})
const bytes = Number(values['size-mib']) * 1_048_576
const folder = join(tmpdir(), `capfleet-slow-reader-${process.pid}`)

try {
  await measure()
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function measure(): Promise<void> {
  const input = await new BenchInputs(folder, { bytes, singleBytes: bytes }).interleaved(DEVICES)
  await using fleet = await BenchFleet.create(join(folder, 'fleet'))
  const servers: BenchServer[] = []
  for (const [index, path] of input.paths.entries()) {
    await fleet.importFile(index, 'slow', path)
    await rm(path)
    servers.push(await fleet.device(index))
  }
  const gateway = await fleet.gateway()
  const { firstNs, lastNs } = input.traffic
  const url = `${gateway.url}/api/v1/pcap/timerange?TSBegin=${firstNs}&TSEnd=${lastNs + 1n}&TSUnit=nanos`
  const limit = ['--limit-rate', `${values['rate-mb']}M`]
  const script = `curl -fsS ${limit.join(' ')} -u ${gateway.credentials} '${url}' | tcpdump -nr - -w - 2>/dev/null | wc -c`
  const client = spawn('bash', ['-o', 'pipefail', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const pids = [gateway.pid, ...servers.map(({ pid }) => pid)]
  const samples: number[][] = []
  const timer = setInterval(() => samples.push(pids.map(rssMiB)), SAMPLE_MS)
  let received = ''
  client.stdout.setEncoding('utf8')
  for await (const text of client.stdout) received += text
  if (client.exitCode === null) await once(client, 'exit')
  clearInterval(timer)
  print(samples, received.trim(), client.exitCode)
}

function print(samples: readonly number[][], received: string, exitCode: number | null): void {
  process.stdout.write(`${received} bytes received, exit code ${exitCode}; resident MiB:\n`)
  process.stdout.write('seconds  gateway  nyc1  lon1  sgp1\n')
  const step = Math.max(1, Math.floor(samples.length / PRINTED_ROWS))
  for (const [index, row] of samples.entries()) {
    if (index % step !== 0 && index !== samples.length - 1) continue
    process.stdout.write(
      `${((index * SAMPLE_MS) / 1000).toFixed(1)}  ${row.map((mib) => mib.toFixed(0)).join('  ')}\n`,
    )
  }
}

function rssMiB(pid: number): number {
  const match = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(match?.[1] ?? 0) / 1024
}
