/** Group "link" of the system status (API section 2.5). */
import { LINK_IDS, type Link, type LinkId } from './link-sensor.ts'
import { GroupBuilder, type StatusGroup } from './status-group.ts'

export function linkGroup(links: ReadonlyMap<LinkId, Link> | undefined): StatusGroup {
  const group = new GroupBuilder()
  for (const id of LINK_IDS) group.read(`${id}_link`, links?.get(id)?.isUp, false)
  return group.build()
}
