/**
 * Counts what a download would deliver, exactly: /v1/count over the chosen devices, whose lines are sent as they arrive;
 * below /devices/{device}/ the answer is that of the device.
 */
import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import { COUNT_PARAMETERS, parseCountedQuery } from '../../../shared/query/download/count-query.ts'
import { estimatedKind } from '../../../shared/query/download/parse-download-query.ts'
import { ignoredNames } from '../../../shared/query/ignored-names.ts'
import { readParameters } from '../../../shared/query/read-parameters.ts'
import { openDeviceCount } from '../../fetch/lines/device-count.ts'
import { FleetCount } from '../../fetch/lines/fleet-count.ts'
import type { LineRequest } from '../../fetch/lines/line-answer.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import type { CountQuestion } from '../../fleet/questions/count-question.ts'
import { captureHolder } from '../request/capture-holder.ts'
import { sourceMembers } from '../request/fleet-selection.ts'
import { parseRequestQuery } from '../request/parse-request-query.ts'
import { refuseWhileDraining } from '../request/refuse-request.ts'
import { callerOf } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import { type AnswerLines, answerLines, linesOfDevice, linesOfFleet } from './answer-lines.ts'
import type { DownloadsParts } from './downloads-parts.ts'

/** Fails before the first byte only for mistakes of the caller. Devices that fail have a line in the answer. */
export async function countFleet(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  using _place = takePlace(ctx, parts)
  const question = readQuestion(ctx, parts, 'fleet')
  const { kind, captureName = '' } = question.query
  const members =
    kind === 'timerange'
      ? sourceMembers(ctx, parts)
      : [parts.fleet.get(await captureHolder(captureName, ctx, parts))]
  const count = new FleetCount(members, question, parts.counts)
  await answerCount(ctx, parts, {
    question,
    members,
    begin: async (request) => linesOfFleet(count, request),
  })
}

/** As if the device were asked directly, but within the bounds of the caller, and by the queue. */
export async function countOnDevice(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  const member = parts.fleet.choose(ctx.params.device ?? '')
  using _place = takePlace(ctx, parts)
  const question = readQuestion(ctx, parts, 'gateway')
  await answerCount(ctx, parts, {
    question,
    members: [member],
    begin: async (request) => linesOfDevice(await openDeviceCount(member, question, parts.counts, request)),
  })
}

function takePlace(ctx: RouteContext, { counts }: DownloadsParts): Disposable {
  const user = callerOf(ctx).name
  return counts.running.take({ user, id: user })
}

/** fleet, gateway: as for downloads. */
function readQuestion(ctx: RouteContext, parts: DownloadsParts, at: 'fleet' | 'gateway'): CountQuestion {
  refuseWhileDraining(parts)
  const given = givenParameters(ctx)
  const { countBytesMax } = readParameters(COUNT_PARAMETERS, given)
  const query = parseRequestQuery(ctx, parts, { kind: estimatedKind(given), parse: parseCountedQuery, at })
  if (query.ignored.length > 0) ctx.set('Capfleet-Ignored', ignoredNames(query.ignored))
  if (query.timeZone !== undefined) ctx.set('Capfleet-Time-Zone', query.timeZone)
  return { query, countBytesMax }
}

interface AskedCount {
  readonly question: CountQuestion
  readonly members: readonly FleetMember[]
  /** Fails before the first byte. */
  readonly begin: (request: LineRequest) => Promise<AnswerLines>
}

async function answerCount(
  ctx: RouteContext,
  parts: DownloadsParts,
  { question: { query, countBytesMax }, members, begin }: AskedCount,
): Promise<void> {
  await answerLines(ctx, parts, {
    name: 'count',
    devices: members.map(({ device }) => device.name),
    query,
    readsPackets: true,
    waitS: query.waitS,
    begin,
    details: { countBytesMax: String(countBytesMax) },
    facts: () => ({}),
    logged: {},
    ended: (outcome) => parts.counts.outcomes.ended(outcome),
  })
}
