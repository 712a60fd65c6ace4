/** A count of what a download of one device delivers, made by the device under one of its streams. */
import { CapfleetError } from '../../../shared/base/error.ts'
import { INTEGER_MAX } from '../../../shared/query/parameter-types.ts'
import { deviceBrokeOff } from '../../device/device-failure.ts'
import { isForeign } from '../../device/device-kind.ts'
import { type FleetMember, kindOfMember } from '../../fleet/fleet.ts'
import { partOfMerge, type TimeRange } from '../../fleet/plan/plan.ts'
import type { BoundedQuery } from '../../fleet/plan/within-bounds.ts'
import {
  type CountEnd,
  type CountLine,
  type CountQuestion,
  CountReader,
  countTarget,
  countUnsupported,
} from '../../fleet/questions/count-question.ts'
import { refuseIgnored } from '../proof/proved-filters.ts'
import {
  type HeldRequest,
  LineAnswer,
  type LineParts,
  type LineQuestion,
  type LineRequest,
  type LineSource,
} from './line-answer.ts'

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

export interface CountedDamage {
  /** Blocks that were left out. */
  readonly corruptBlocks: bigint
  /** Set if the device has removed packets of the range from before this time, which were not counted. */
  readonly agedOutBeforeNs: bigint | undefined
}

/**
 * The damage that a download of the device, as part of a merge, meets in the range. The device reads it again, under
 * a lease that the caller has. Fails like openDeviceCount().
 */
export async function countDamage(
  member: FleetMember,
  query: BoundedQuery,
  { beginNs, endNs }: TimeRange,
  request: HeldRequest,
): Promise<CountedDamage> {
  if (isForeign(kindOfMember(member))) throw countUnsupported(member)
  const part = { ...partOfMerge(query), format: 'pcap', compression: 'none', tsMaxNs: undefined } as const
  const question = { query: { ...part, beginNs, endNs }, countBytesMax: INTEGER_MAX }
  try {
    await using answer = await LineAnswer.openHeld(member, countLines(question), request)
    let end: CountEnd | undefined
    for await (const lines of answer.lines()) end = lines.find((line) => 'end' in line)
    if (end === undefined) throw deviceBrokeOff(member.device.name)
    const { corruptBlocks, countedToNs, agedOutBeforeNs } = end
    if (corruptBlocks === undefined || countedToNs !== undefined) throw countUnsupported(member)
    return { corruptBlocks: BigInt(corruptBlocks), agedOutBeforeNs: optionalBigInt(agedOutBeforeNs) }
  } catch (error) {
    if (!(error instanceof CapfleetError) || error.code !== 'aged-out') throw error
    return { corruptBlocks: 0n, agedOutBeforeNs: endNs }
  }
}

function optionalBigInt(text: string | undefined): bigint | undefined {
  return text === undefined ? undefined : BigInt(text)
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
