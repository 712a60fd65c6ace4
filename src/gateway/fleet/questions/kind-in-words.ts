import { isForeign } from '../../device/device-kind.ts'
import { type FleetMember, kindOfMember } from '../fleet.ts'

/** What a device is that does not have a path of our appliances, for errors: "because it is ...". */
export function kindInWords(member: FleetMember): string {
  if (isForeign(kindOfMember(member))) return 'a third-party device'
  const { kind, version } = member.health.report
  if (kind === undefined) return 'a third-party device, a gateway, or an older version of capfleet'
  if (version !== undefined) return 'an older version of capfleet'
  // It answers with the versions of all its devices.
  return 'a gateway (make its devices devices of this one, with its url and /devices/NAME as their url)'
}
