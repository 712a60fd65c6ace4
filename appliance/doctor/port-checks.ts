/** Checks a capture port: its interface as the kernel reports it, and its settings as ethtool does. */

import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { type MachineRoots, readNumber, readText } from '../machine/kernel-files.ts'
import { runTool } from '../machine/run-tool.ts'
import type { CapturePortConfig } from '../settings/capture-config.ts'
import { parseFeatures, parseHardwareStamps, parseRxQueues, parseRxRing } from './ethtool-report.ts'
import { type Finding, FindingList } from './finding.ts'

/** Flags of /sys/class/net/<name>/flags, from linux/if.h. */
const IFF_UP = 0x1
const IFF_PROMISC = 0x100

/** These merge packets before the capture sees them: it would store packets that were never on the wire. */
const MERGING_OFFLOADS = [
  ['generic-receive-offload', 'gro'],
  ['large-receive-offload', 'lro'],
] as const
/**
 * These leave packets whole that are segmented only later, on virtual interfaces and for packets sent by this machine.
 */
const CUTTING_OFFLOADS = [
  ['generic-segmentation-offload', 'gso'],
  ['tcp-segmentation-offload', 'tso'],
] as const

export async function checkPort(
  port: CapturePortConfig,
  roots: MachineRoots,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const name = port.interface
  const list = new FindingList(`cap${port.port} (${name})`)
  const folder = join(roots.sys, 'class/net', name)
  const exists = await access(folder).then(
    () => true,
    () => false,
  )
  if (!exists) {
    list.problem('interface', {
      detail: `there is no interface ${name}`,
      fix: '`ip link` lists them; correct capture.ports',
    })
    return list.findings
  }
  await checkLink(list, port, { folder, signal })
  await checkNic(list, port, signal)
  return list.findings
}

async function checkLink(
  list: FindingList,
  { interface: name, promiscuous }: CapturePortConfig,
  { folder, signal }: { readonly folder: string; readonly signal: AbortSignal },
): Promise<void> {
  const flags = Number((await readText(join(folder, 'flags'), signal)) ?? 0)
  const carrier = await readText(join(folder, 'carrier'), signal)
  const speedMbps = (await readNumber(join(folder, 'speed'), signal)) ?? -1
  const missed = (await readNumber(join(folder, 'statistics/rx_missed_errors'), signal)) ?? 0
  if ((flags & IFF_UP) === 0) {
    list.problem('interface', { detail: 'it is down', fix: `ip link set ${name} up` })
  } else if (carrier !== '1') {
    list.problem('interface', { detail: 'it has no link', fix: 'check the cable and the other end' })
  } else {
    list.ok('interface', speedMbps > 0 ? `up, ${speedMbps} Mbit/s` : 'up, no speed known')
  }
  const isPromiscuous = (flags & IFF_PROMISC) !== 0
  if (promiscuous) list.ok('promiscuous', isPromiscuous ? 'yes' : 'the recorder switches it on')
  else list.ok('promiscuous', 'off by configuration: packets for other hosts are not captured')
  if (missed > 0) {
    list.warn('missed', {
      detail: `the interface has lost ${missed} packets since it came up, before they could be captured`,
      fix: 'a larger ring (below), more queues and threads, or fewer packets',
    })
  }
}

async function checkNic(
  list: FindingList,
  { interface: name, threads }: CapturePortConfig,
  signal: AbortSignal,
): Promise<void> {
  const [features, ring, queues, stamps] = await Promise.all(
    ['-k', '-g', '-l', '-T'].map((option) => runTool('ethtool', { args: [option, name], signal })),
  )
  if (features === undefined) {
    list.warn('offloads', {
      detail: 'cannot check offloads, ring, queues and time stamps: ethtool is not installed',
      fix: 'apt-get install ethtool',
    })
    return
  }
  checkOffloads(list, name, features)
  checkRing(list, name, ring)
  checkQueues(list, { name, threads, output: queues })
  if (parseHardwareStamps(stamps)) list.ok('time stamps', 'the interface can stamp every packet')
  else list.ok('time stamps', 'by the kernel: the interface cannot stamp every packet')
}

function checkOffloads(list: FindingList, name: string, output: string): void {
  const features = parseFeatures(output)
  for (const [feature, option] of MERGING_OFFLOADS) {
    const found = features.get(feature)
    if (found?.isOn !== true) list.ok(option, 'off')
    else {
      const fix = found.isFixed
        ? 'the driver cannot switch it off: use another interface'
        : `ethtool -K ${name} ${option} off`
      list.problem(option, { detail: 'on: packets are merged before they are captured', fix })
    }
  }
  for (const [feature, option] of CUTTING_OFFLOADS) {
    if (features.get(feature)?.isOn !== true) list.ok(option, 'off')
    else {
      list.warn(option, {
        detail: 'on: packets sent by this machine itself are captured before they are segmented',
        fix: `ethtool -K ${name} ${option} off`,
      })
    }
  }
  const isStripping = features.get('rx-vlan-offload')?.isOn === true
  list.ok(
    'rx-vlan',
    isStripping ? 'on: the capture restores VLAN tags' : 'off: VLAN tags stay in the packets',
  )
}

function checkRing(list: FindingList, name: string, output: string | undefined): void {
  const { current, max } = parseRxRing(output)
  if (current === undefined || max === undefined) list.ok('ring', 'the driver has no adjustable ring')
  else if (current >= max) list.ok('ring', `${current} packets, the maximum`)
  else {
    list.warn('ring', {
      detail: `${current} packets of ${max}: bursts are lost sooner`,
      fix: `ethtool -G ${name} rx ${max}`,
    })
  }
}

function checkQueues(
  list: FindingList,
  {
    name,
    threads,
    output,
  }: { readonly name: string; readonly threads: number; readonly output: string | undefined },
): void {
  const { current, max } = parseRxQueues(output)
  if (current === undefined) list.ok('queues', `one, for ${threads} threads`)
  else if (current >= threads) list.ok('queues', `${current} for ${threads} threads`)
  else {
    const isEnough = (max ?? 0) >= threads
    list.warn('queues', {
      detail: `${current} for ${threads} threads: one processor does the kernel's work for several`,
      fix: isEnough ? `ethtool -L ${name} combined ${threads}` : `set threads of the port to ${current}`,
    })
  }
}
