import { CapfleetError } from '../../shared/base/error.ts'
import { deviceFailure } from '../device/device-failure.ts'
import { isForeign } from '../device/device-kind.ts'
import { type FleetMember, kindOfMember } from '../fleet/fleet.ts'
import type { SeenLine, SeenQuestion } from '../fleet/seen-question.ts'
import { CountedDownload } from './counted-download.ts'
import type { FetchParts } from './fetch-download.ts'
import { SeenAnswer, type SeenParts, type SeenRequest } from './seen-answer.ts'

/** A search for addresses in the packets of one device, by the device or by the gateway. */
export interface DeviceSearch extends AsyncDisposable {
  /** Part by part as they arrive, up to the last line. */
  lines(): AsyncGenerator<readonly SeenLine[]>
}

export interface SearchParts extends SeenParts {
  readonly fetch: FetchParts
}

/**
 * The device searches if it can: otherwise the packets of the addresses are downloaded and counted, with Verify=1.
 * Fails with seen-unsupported, with the errors of a device or of the queue, or with the reason of the signal.
 */
export async function openDeviceSearch(
  member: FleetMember,
  question: SeenQuestion,
  parts: SearchParts,
  request: SeenRequest,
): Promise<DeviceSearch> {
  let cause: unknown
  if (!isForeign(kindOfMember(member))) {
    try {
      return await SeenAnswer.open(member, question, parts, request)
    } catch (error) {
      if (!(error instanceof CapfleetError) || error.code !== 'seen-unsupported') throw error
      cause = error.cause
    }
  }
  try {
    return await CountedDownload.open(member, question, parts.fetch, { ...request, cause })
  } catch (error) {
    request.signal.throwIfAborted()
    throw deviceFailure(member.device.name, error)
  }
}
