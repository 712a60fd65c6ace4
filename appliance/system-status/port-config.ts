import { CAPTURE_LINK_IDS, type Link, type LinkId } from './link-sensor.ts'

/** The port layout in words: "cap0=enp1s0f0 cap1=enp1s0f1". */
export function describePorts(links: ReadonlyMap<LinkId, Link> | undefined): string {
  const ports = CAPTURE_LINK_IDS.flatMap((id) => {
    const link = links?.get(id)
    return link === undefined ? [] : [`${id}=${link.name}`]
  })
  return ports.length === 0 ? 'no capture port' : ports.join(' ')
}
