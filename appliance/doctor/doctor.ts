/** Checks everything that decides whether a device captures without loss. Changes nothing. */

import { join } from 'node:path'
import type { ApplianceConfig } from '../appliance-config.ts'
import type { CaptureReport } from '../link/capture-report.ts'
import { RecorderClient } from '../link/recorder-client.ts'
import { MACHINE_ROOTS, type MachineRoots, readNumber } from '../machine/kernel-files.ts'
import { isCapturing } from '../system-status/capture-group.ts'
import { checkClock } from './clock-checks.ts'
import { type Finding, FindingList } from './finding.ts'
import { checkKernel } from './kernel-checks.ts'
import { checkPort } from './port-checks.ts'
import { checkPrivileges } from './privilege-checks.ts'
import { checkRecorder } from './recorder-checks.ts'
import { checkStore } from './store-checks.ts'

const TOOLS_LIMIT_MS = 10_000
const BITS_PER_MEGABIT = 1e6

/** The findings in reading order: what captures, what it runs on, where it writes. */
export async function examine(
  config: ApplianceConfig,
  roots: MachineRoots = MACHINE_ROOTS,
): Promise<readonly Finding[]> {
  const signal = AbortSignal.timeout(TOOLS_LIMIT_MS)
  const { capture, store } = config
  const recorder = await askRecorder(store, signal)
  const ports = await Promise.all(capture.ports.map((port) => checkPort(port, roots, signal)))
  return [
    ...checkRecorder(recorder?.report),
    ...(capture.ports.length === 0 ? noPorts() : ports.flat()),
    ...(capture.ports.length === 0
      ? []
      : await checkPrivileges(
          { proc: roots.proc, recorderPid: recorder?.pid, execPath: process.execPath },
          signal,
        )),
    ...(await checkKernel(capture, roots.proc, signal)),
    ...(await checkClock(roots.sys, signal)),
    ...(await checkStore({
      store,
      isCapturing: recorder !== undefined && isCapturing(recorder.report),
      portBytesPerSecond: await lineRate(config, roots, signal),
    })),
  ]
}

async function askRecorder(
  store: string,
  signal: AbortSignal,
): Promise<{ readonly report: CaptureReport; readonly pid: number } | undefined> {
  const client = new RecorderClient(store)
  try {
    const [report, { pid }] = await Promise.all([client.captureReport(signal), client.info(signal)])
    return { report, pid }
  } catch {
    return undefined
  }
}

function noPorts(): readonly Finding[] {
  const list = new FindingList('ports')
  list.warn('configured', {
    detail: 'none: this device serves imported captures only',
    fix: 'add interfaces to capture.ports',
  })
  return list.findings
}

async function lineRate(
  { capture }: ApplianceConfig,
  roots: MachineRoots,
  signal: AbortSignal,
): Promise<number> {
  const speeds = await Promise.all(
    capture.ports.map((port) => readNumber(join(roots.sys, 'class/net', port.interface, 'speed'), signal)),
  )
  return speeds.reduce<number>((sum, mbps = 0) => sum + (Math.max(mbps, 0) * BITS_PER_MEGABIT) / 8, 0)
}
