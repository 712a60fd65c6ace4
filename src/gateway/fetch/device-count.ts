/** A count of what a download of one device delivers, made by the device under one of its streams. */

import { INTEGER_MAX } from '../../shared/query/parameter-types.ts'
import { deviceBrokeOff } from '../device/device-failure.ts'
import { isForeign } from '../device/device-kind.ts'
import {
  type CountEnd,
  type CountLine,
  type CountQuestion,
  CountReader,
  countTarget,
  countUnsupported,
} from '../fleet/count-question.ts'
import { type FleetMember, kindOfMember } from '../fleet/fleet.ts'
import { partOfMerge, type TimeRange } from '../fleet/plan.ts'
import type { BoundedQuery } from '../fleet/within-bounds.ts'
import {
  type HeldRequest,
  LineAnswer,
  type LineParts,
  type LineQuestion,
  type LineRequest,
  type LineSource,
} from './line-answer.ts'
import { refuseIgnored } from './proved-filters.ts'

/** Fails with count-unsupported, with the errors of a device or of the queue, or with the reason of the signal. */
export async function openDeviceCount(
  member: FleetMember,
  question: CountQuestion,
  parts: LineParts,
  request: LineRequest,
): Promise<LineSource<CountLine>> {
  if (isForeign(kindOfMember(member))) throw countUnsupported(member)
  return await LineAnswer.open(member, countLines(question), parts, request)
}

/**
 * Blocks that a download of the device, as part of a merge, leaves out of the range because they are damaged. The device
 * reads it again, under a lease that the caller has. Fails like openDeviceCount().
 */
export async function countDamage(
  member: FleetMember,
  query: BoundedQuery,
  { beginNs, endNs }: TimeRange,
  request: HeldRequest,
): Promise<bigint> {
  if (isForeign(kindOfMember(member))) throw countUnsupported(member)
  const part = { ...partOfMerge(query), format: 'pcap', compression: 'none', tsMaxNs: undefined } as const
  const question = { query: { ...part, beginNs, endNs }, countBytesMax: INTEGER_MAX }
  await using answer = await LineAnswer.openHeld(member, countLines(question), request)
  let end: CountEnd | undefined
  for await (const lines of answer.lines()) end = lines.find((line) => 'end' in line)
  if (end === undefined) throw deviceBrokeOff(member.device.name)
  return BigInt(end.corruptBlocks ?? 0)
}

function countLines(question: CountQuestion): LineQuestion<CountLine> {
  const target = countTarget(question)
  return {
    target,
    readsPackets: true,
    isForced: question.query.forcedFilters.length > 0,
    checkHead: (device, stream) => refuseIgnored({ device, target }, stream),
    reader: (device) => new CountReader(device, question),
    isProgress: (line) => !('end' in line),
    unsupported: countUnsupported,
  }
}
