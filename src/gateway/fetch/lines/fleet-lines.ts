/** The answers of many devices in lines, which are passed on as they arrive. No device waits for another. */
import type { CapfleetError } from '../../../shared/base/error.ts'
import { deviceFailure } from '../../device/device-failure.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import { interleaved } from './interleaved.ts'
import type { LineRequest, LineSource } from './line-answer.ts'

/** A question to many devices. */
export interface FleetQuestion<Line> {
  open(member: FleetMember, request: LineRequest): Promise<LineSource<Line>>
  isProgress(line: Line): boolean
  /** What the client gets for a line of the device. */
  take(device: string, line: Line): readonly object[]
  /** What the client gets if the device does not answer, or breaks off. */
  failed(device: string, failure: CapfleetError): readonly object[]
}

/** Parts of answers that are kept while the client reads those before them. Each has at most 64 KiB, or one line. */
const HELD_PARTS = 64
/** Progress is for people. */
const PROGRESS_MS = 1_000

/** Some lines of one device, or its progress. */
interface Part {
  readonly lines: readonly object[]
  readonly isProgress: boolean
}

/** Some lines at a time. Ends early if the signal of the request aborts. */
export async function* fleetLines<Line>(
  members: readonly FleetMember[],
  question: FleetQuestion<Line>,
  request: LineRequest,
): AsyncGenerator<readonly object[]> {
  const parts = interleaved(
    members.map((member, index) =>
      linesOf(member, question, { ...request, leaseId: `${request.leaseId}.${index}` }),
    ),
    // A device that is still counting, and has a stream, must not wait for a client that reads slowly.
    { heldMax: HELD_PARTS, mayDrop: ({ isProgress }) => isProgress },
  )
  for await (const some of parts) yield some.flatMap(({ lines }) => lines)
}

async function* linesOf<Line>(
  member: FleetMember,
  question: FleetQuestion<Line>,
  request: LineRequest,
): AsyncGenerator<Part> {
  const device = member.device.name
  const isDue = everyMs(PROGRESS_MS)
  try {
    await using source = await question.open(member, request)
    for await (const lines of source.lines()) {
      const shown = lines.filter((line) => !question.isProgress(line) || isDue())
      const passed = shown.flatMap((line) => question.take(device, line))
      if (passed.length > 0)
        yield { lines: passed, isProgress: shown.every((line) => question.isProgress(line)) }
    }
  } catch (error) {
    if (request.signal.aborted) return
    const lines = question.failed(device, deviceFailure(device, error))
    if (lines.length > 0) yield { lines, isProgress: false }
  }
}

/** Whether so much time has passed since it last said so. */
function everyMs(intervalMs: number): () => boolean {
  let lastMs = Number.NEGATIVE_INFINITY
  return () => {
    const nowMs = performance.now()
    if (nowMs - lastMs < intervalMs) return false
    lastMs = nowMs
    return true
  }
}
