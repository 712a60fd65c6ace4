/** Group "link" of the system status. */
import { CAPTURE_LINK_IDS, LINK_IDS, type Link, type LinkId } from '../machine/link-sensor.ts'
import { GroupBuilder, type StatusGroup } from './status-group.ts'

export function linkGroup(links: ReadonlyMap<LinkId, Link> | undefined): StatusGroup {
  const group = new GroupBuilder()
  for (const id of LINK_IDS) group.read(`${id}_link`, links?.get(id)?.isUp, false)
  return group.build()
}

/** The port layout in words: "cap0=enp1s0f0 cap1=enp1s0f1". */
export function describePorts(links: ReadonlyMap<LinkId, Link> | undefined): string {
  const ports = CAPTURE_LINK_IDS.flatMap((id) => {
    const link = links?.get(id)
    return link === undefined ? [] : [`${id}=${link.name}`]
  })
  return ports.length === 0 ? 'no capture port' : ports.join(' ')
}
