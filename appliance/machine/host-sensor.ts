/** Memory, CPUs and uptime from /proc, memory errors from /sys. */

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type MachineRoots, readNumber, readText } from './kernel-files.ts'

/** undefined = the kernel does not report it. */
export interface HostReadings {
  readonly uptimeSeconds: number | undefined
  /** Names of /proc/meminfo -> bytes. */
  readonly memoryBytes: ReadonlyMap<string, number>
  /** Read from disks since the machine was booted. */
  readonly pageInBytes: number | undefined
  readonly openFiles: number | undefined
  readonly eccErrors: number | undefined
  /** Percentage over all CPUs since the previous reading. */
  readonly cpuLoadPct: number | undefined
}

interface CpuTimes {
  readonly busy: number
  readonly total: number
}

/** Each call returns the load since the last. */
export function hostReader(roots: MachineRoots): (signal: AbortSignal) => Promise<HostReadings> {
  let before: CpuTimes | undefined
  return async (signal) => {
    const [uptime, meminfo, vmstat, files, stat, eccErrors] = await Promise.all([
      readText(join(roots.proc, 'uptime'), signal),
      readText(join(roots.proc, 'meminfo'), signal),
      readText(join(roots.proc, 'vmstat'), signal),
      readText(join(roots.proc, 'sys/fs/file-nr'), signal),
      readText(join(roots.proc, 'stat'), signal),
      readEccErrors(roots, signal),
    ])
    const cpu = parseCpu(stat)
    const cpuLoadPct = loadPct(before, cpu)
    before = cpu
    const pageIn = firstNumber(/^pgpgin (\d+)/m, vmstat)
    return {
      uptimeSeconds: firstNumber(/^([\d.]+)/, uptime),
      memoryBytes: parseMemory(meminfo),
      pageInBytes: pageIn === undefined ? undefined : pageIn * KIB,
      openFiles: firstNumber(/^(\d+)/, files),
      eccErrors,
      cpuLoadPct,
    }
  }
}

const KIB = 1024

function parseMemory(text = ''): ReadonlyMap<string, number> {
  const rows = text.matchAll(/^(\w+):\s+(\d+) kB$/gm)
  return new Map([...rows].map(([, name = '', kib]) => [name, Number(kib) * KIB]))
}

/** user nice system idle iowait irq softirq steal: guests are included in user. */
function parseCpu(text = ''): CpuTimes | undefined {
  const row = /^cpu +(.*)$/m.exec(text)?.[1]
  if (row === undefined) return undefined
  const times = row.split(' ').map(Number).slice(0, 8)
  const total = times.reduce((sum, ticks) => sum + ticks, 0)
  return { total, busy: total - (times[3] ?? 0) - (times[4] ?? 0) }
}

function loadPct(before: CpuTimes | undefined, now: CpuTimes | undefined): number | undefined {
  if (!before || !now || now.total <= before.total) return undefined
  return (100 * (now.busy - before.busy)) / (now.total - before.total)
}

function firstNumber(pattern: RegExp, text = ''): number | undefined {
  const digits = pattern.exec(text)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** Corrected and uncorrected errors of all memory controllers; undefined without ECC. */
async function readEccErrors(roots: MachineRoots, signal: AbortSignal): Promise<number | undefined> {
  const folder = join(roots.sys, 'devices/system/edac/mc')
  const controllers = (await readdir(folder).catch(() => [])).filter((name) => /^mc\d+$/.test(name))
  if (controllers.length === 0) return undefined
  let errors = 0
  for (const name of controllers) {
    for (const file of ['ce_count', 'ue_count']) {
      errors += (await readNumber(join(folder, name, file), signal)) ?? 0
    }
  }
  return errors
}
