import { CapfleetError } from '../../../shared/base/error.ts'
import { deviceFailure } from '../../device/device-failure.ts'
import { isForeign } from '../../device/device-kind.ts'
import { type FleetMember, kindOfMember } from '../../fleet/fleet.ts'
import {
  type SeenLine,
  type SeenQuestion,
  SeenReader,
  seenTarget,
  seenUnsupported,
} from '../../fleet/questions/seen-question.ts'
import {
  LineAnswer,
  type LineParts,
  type LineQuestion,
  type LineRequest,
  type LineSource,
} from '../lines/line-answer.ts'
import { CountedDownload, type CountParts } from './counted-download.ts'

export type SearchParts = LineParts & CountParts

/**
 * The device searches if it can: otherwise the packets of the addresses are downloaded and counted, with Verify=1.
 * Fails with seen-unsupported, with the errors of a device or of the queue, or with the reason of the signal.
 */
export async function openDeviceSearch(
  member: FleetMember,
  question: SeenQuestion,
  parts: SearchParts,
  request: LineRequest,
): Promise<LineSource<SeenLine>> {
  let cause: unknown
  if (!isForeign(kindOfMember(member))) {
    try {
      return await LineAnswer.open(member, searchLines(question), parts, request)
    } catch (error) {
      if (!(error instanceof CapfleetError) || error.code !== 'seen-unsupported') throw error
      cause = error.cause
    }
  }
  try {
    return await CountedDownload.open(member, question, parts, { ...request, cause })
  } catch (error) {
    request.signal.throwIfAborted()
    throw deviceFailure(member.device.name, error)
  }
}

function searchLines(question: SeenQuestion): LineQuestion<SeenLine> {
  return {
    target: seenTarget(question),
    readsPackets: question.verify,
    isForced: question.isForced,
    reader: (device) => new SeenReader(device, question),
    isProgress: (line) => 'checkedBytes' in line,
    unsupported: (member, cause) => seenUnsupported(member, 'it does not have the path', cause),
  }
}
