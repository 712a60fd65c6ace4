/** A count of what a download of one device would deliver, made by the device under one of its streams. */
import { isForeign } from '../device/device-kind.ts'
import {
  type CountLine,
  type CountQuestion,
  CountReader,
  countTarget,
  countUnsupported,
} from '../fleet/count-question.ts'
import { type FleetMember, kindOfMember } from '../fleet/fleet.ts'
import {
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
