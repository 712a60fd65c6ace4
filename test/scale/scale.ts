/**
 * `npm run scale -- [--minutes 10] [--devices 1000] [--captures 3] [--gateways 3] [--profiles FOLDER]`: three gateways
 * over a thousand simulated devices with three captures each and one Redis, all on this machine. The phases: probes
 * alone, then people and merges of 64 devices, a changed configuration, a third of the devices gone (half of them
 * refuse connections, half are silent) and back. Prints the costs and the durations of calls, by phase. Status 1: a
 * merge was wrong, a call failed that should not have, or a gateway noticed a change too late. With --profiles each
 * gateway writes a profile of its processor time (--cpu-prof).
 */
import { parseArgs } from 'node:util'
import { runProgram } from '../../src/shared/base/program.ts'
import { printReport } from './scale-report.ts'
import { ScaleRun } from './scale-run.ts'
import { ScaleWorld } from './scale-world.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    devices: { type: 'string', default: '1000' },
    captures: { type: 'string', default: '3' },
    gateways: { type: 'string', default: '3' },
    profiles: { type: 'string' },
  },
})
const minutes = numberOf('minutes', 0.5)
const devices = numberOf('devices', 1_000)
const captures = numberOf('captures', 1)
const gateways = numberOf('gateways', 1)
let hasFailed = false

await runProgram(measure)
if (hasFailed) process.exitCode = 1

async function measure(): Promise<void> {
  const startMs = performance.now()
  // As many as a changed configuration adds.
  const spareDevices = Math.floor(devices / 20)
  const { profiles } = values
  await using world = await ScaleWorld.start({ gateways, devices, spareDevices, captures, profiles })
  const run = new ScaleRun(world, { devices, captures, seconds: minutes * 60 })
  run.note('gateways ready', performance.now() - startMs)
  await run.play()
  // A killed process writes no profile.
  await Promise.all(world.gateways.map((gateway) => gateway.signal('SIGTERM')))
  printReport(run)
  hasFailed = run.faults.length > 0
}

function numberOf(name: 'minutes' | 'devices' | 'captures' | 'gateways', least: number): number {
  const number = Number(values[name])
  if (number >= least) return number
  process.stderr.write(`scale: --${name} must be a number from ${least}, got "${values[name]}"\n`)
  process.exit(2)
}
