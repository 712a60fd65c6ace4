/** Checks the kernel memory and settings that a capture needs. */
import { join } from 'node:path'
import { readNumber, readText } from '../machine/kernel-files.ts'
import type { CaptureConfig } from '../settings/capture-config.ts'
import { type Finding, FindingList } from './finding.ts'

/** What arrives in one burst at 10 Gbit/s, with room to spare; the kernel's defaults are for desktops. */
const WANTED = [
  ['net.core.netdev_max_backlog', 10_000, 'packets that may queue for a processor'],
  ['net.core.netdev_budget', 600, 'packets that the kernel processes in one pass'],
] as const

const MIB = 2 ** 20
const KIB = 2 ** 10

/** `proc` is the path of /proc. */
export async function checkKernel(
  capture: CaptureConfig,
  proc: string,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const list = new FindingList('kernel')
  await checkMemory(list, { capture, proc, signal })
  for (const [name, wanted, what] of WANTED) {
    const value = await readNumber(join(proc, 'sys', name.replaceAll('.', '/')), signal)
    if (value === undefined) list.ok(name, 'not available here')
    else if (value >= wanted) list.ok(name, String(value))
    else {
      list.warn(name, {
        detail: `${value}: few ${what}`,
        fix: `sysctl -w ${name}=${wanted}, and a line in /etc/sysctl.d`,
      })
    }
  }
  const limits = (await readText(join(proc, 'self/limits'), signal)) ?? ''
  const locked = /^Max locked memory\s+(\S+)/m.exec(limits)?.[1]
  list.ok('RLIMIT_MEMLOCK', `${locked ?? 'unknown'}; the kernel's rings do not count against it`)
  return list.findings
}

async function checkMemory(
  list: FindingList,
  {
    capture,
    proc,
    signal,
  }: { readonly capture: CaptureConfig; readonly proc: string; readonly signal: AbortSignal },
): Promise<void> {
  const meminfo = (await readText(join(proc, 'meminfo'), signal)) ?? ''
  const available = Number(/^MemAvailable:\s+(\d+) kB$/m.exec(meminfo)?.[1] ?? 0) * KIB
  const rings = capture.ports.reduce((sum, { threads, ringBytes }) => sum + threads * ringBytes, 0)
  const needed = rings + capture.queueBytes
  const detail = `a capture takes ${Math.ceil(needed / MIB)} MiB (rings and queueBytes), ${Math.floor(available / MIB)} MiB are available`
  if (needed <= available) list.ok('memory', detail)
  else list.problem('memory', { detail, fix: 'lower ringBytes or threads of capture.ports, or queueBytes' })
}
