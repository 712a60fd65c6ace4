import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { type MachineRoots, readNumber, readText } from './kernel-files.ts'

export const CAPTURE_LINK_IDS = ['cap0', 'cap1', 'cap2', 'cap3', 'cap4', 'cap5', 'cap6', 'cap7'] as const
export const LINK_IDS = [...CAPTURE_LINK_IDS, 'man0', 'man10'] as const
export type LinkId = (typeof LINK_IDS)[number]

/** API id -> network interface. */
export type LinkNames = Readonly<Partial<Record<LinkId, string>>>

export interface Link {
  readonly name: string
  readonly isUp: boolean
  /** 0 = down. Counted from when this program first saw it up. */
  readonly upSeconds: number
  /** undefined if the interface has no speed, such as a virtual one. */
  readonly speedMbps: number | undefined
  /** The kernel's counters since the interface was created. */
  readonly packets: number | undefined
  readonly bytes: number | undefined
  readonly drops: number | undefined
  readonly errors: number | undefined
}

/** Reads the interfaces; an absent one has no entry. Remembers since when each has been up. */
export function linkReader(
  roots: MachineRoots,
  names: LinkNames,
): (signal: AbortSignal) => Promise<ReadonlyMap<LinkId, Link>> {
  const upSinceMs = new Map<LinkId, number>()
  return async (signal) => {
    const links = new Map<LinkId, Link>()
    for (const id of LINK_IDS) {
      const name = names[id]
      const link = name === undefined ? undefined : await readLink(join(roots.sys, 'class/net', name), signal)
      if (name === undefined || link?.isUp !== true) upSinceMs.delete(id)
      if (name === undefined || link === undefined) continue
      const sinceMs = upSinceMs.get(id) ?? performance.now()
      if (link.isUp) upSinceMs.set(id, sinceMs)
      const upSeconds = link.isUp ? Math.floor((performance.now() - sinceMs) / 1000) : 0
      links.set(id, { ...link, name, upSeconds })
    }
    return links
  }
}

async function readLink(
  folder: string,
  signal: AbortSignal,
): Promise<Omit<Link, 'name' | 'upSeconds'> | undefined> {
  const exists = await access(folder).then(
    () => true,
    () => false,
  )
  if (!exists) return undefined
  const [carrier, speed, packets, bytes, drops, errors] = await Promise.all([
    // An interface that is down returns an error: it has no link.
    readText(join(folder, 'carrier'), signal),
    readNumber(join(folder, 'speed'), signal),
    readNumber(join(folder, 'statistics/rx_packets'), signal),
    readNumber(join(folder, 'statistics/rx_bytes'), signal),
    readNumber(join(folder, 'statistics/rx_dropped'), signal),
    readNumber(join(folder, 'statistics/rx_errors'), signal),
  ])
  // -1 means unknown.
  const speedMbps = speed !== undefined && speed > 0 ? speed : undefined
  return { isUp: carrier === '1', speedMbps, packets, bytes, drops, errors }
}

/** man0 is the interface of the default route; capture interfaces must be configured. */
export async function detectLinks(roots: MachineRoots, signal: AbortSignal): Promise<LinkNames> {
  const table = (await readText(join(roots.proc, 'net/route'), signal)) ?? ''
  const [name] =
    table
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .find(([, destination]) => destination === '00000000') ?? []
  return name === undefined ? {} : { man0: name }
}
