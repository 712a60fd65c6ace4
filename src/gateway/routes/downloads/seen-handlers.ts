/**
 * Searches for addresses: /v1/seen over the chosen devices, whose lines are sent as they arrive; below
 * /devices/{device}/ the answer is that of the device.
 */
import { hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FairLimit } from '../../../shared/base/fair-limit.ts'
import { takeParameters } from '../../../shared/contract/request-parameters.ts'
import { SEEN_PARAMETERS, SEEN_RANGE, SEEN_WAIT } from '../../../shared/contract/seen-parameters.ts'
import { FLEET_PARAMETERS } from '../../../shared/query/download/gateway-options.ts'
import { parseDownloadQuery } from '../../../shared/query/download/parse-download-query.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { rfc3339Of } from '../../../shared/query/time/query-time.ts'
import type { LineRequest } from '../../fetch/lines/line-answer.ts'
import { openDeviceSearch } from '../../fetch/search/device-search.ts'
import { FleetSearch } from '../../fetch/search/fleet-search.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import { type SeenQuestion, seenQuestion } from '../../fleet/questions/seen-question.ts'
import { sourceMembers } from '../request/fleet-selection.ts'
import { parseRequestQuery } from '../request/parse-request-query.ts'
import { refuseWhileDraining } from '../request/refuse-request.ts'
import { callerOf, requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import { type AnswerLines, answerLines, linesOfDevice, linesOfFleet } from './answer-lines.ts'
import type { DownloadsParts } from './downloads-parts.ts'

/** Fails before the first byte only for mistakes of the caller. Devices that fail have a line in the answer. */
export async function searchFleet(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  using _place = takePlace(ctx, parts)
  const { question, waitS } = await inTurn(ctx, () => readQuestion(ctx, parts, 'fleet'))
  const members = sourceMembers(ctx, parts)
  const search = new FleetSearch(members, question, parts.seen)
  await answerSearch(ctx, parts, {
    question,
    waitS,
    members,
    begin: async (request) => linesOfFleet(search, request),
  })
}

/** As if the device were asked directly, but within the bounds of the caller, and with Verify by the queue. */
export async function searchDevice(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  const member = parts.fleet.choose(ctx.params.device ?? '')
  using _place = takePlace(ctx, parts)
  const { question, waitS } = await inTurn(ctx, () => readQuestion(ctx, parts, 'gateway'))
  await answerSearch(ctx, parts, {
    question,
    waitS,
    members: [member],
    begin: async (request) => linesOfDevice(await openDeviceSearch(member, question, parts.seen, request)),
  })
}

/** Before the list is read, which takes longer than all that a refusal costs. */
function takePlace(ctx: RouteContext, { seen }: DownloadsParts): Disposable {
  const user = callerOf(ctx).name
  return seen.running.take({ user, id: user })
}

/** Lists that are read in one turn of the event loop: other requests get theirs in between. */
const READING = new FairLimit({ places: 1 })

async function inTurn<Result>(ctx: RouteContext, read: () => Result): Promise<Result> {
  using leaving = requestSignal(ctx)
  using _turn = await READING.acquire(leaving.signal, callerOf(ctx).name)
  const result = read()
  await nextTurn()
  return result
}

/** fleet, gateway: as for downloads. */
function readQuestion(
  ctx: RouteContext,
  parts: DownloadsParts,
  at: 'fleet' | 'gateway',
): Pick<AskedSearch, 'question' | 'waitS'> {
  refuseWhileDraining(parts)
  const rows = { ...SEEN_RANGE, ...SEEN_PARAMETERS, ...SEEN_WAIT }
  const { waitS, ...options } = takeParameters(ctx, at === 'fleet' ? { ...FLEET_PARAMETERS, ...rows } : rows)
  const query = parseRequestQuery(ctx, parts, { kind: 'timerange', parse: parseSeenRange, at })
  const { beginNs, endNs, localTimes, timeZone } = query
  if (beginNs === endNs && localTimes === undefined)
    throw badParameter('TSEnd', `(${rfc3339Of(endNs)}) must be later than TSBegin`)
  if (timeZone !== undefined) ctx.set('Capfleet-Time-Zone', timeZone)
  return { question: seenQuestion(query, options), waitS }
}

/** The parameters that a download has too. */
const SHARED_NAMES: ReadonlySet<string> = new Set(
  [...Object.values(SEEN_RANGE), SEEN_PARAMETERS.filterBpf].map(({ name }) => name),
)

const parseSeenRange: typeof parseDownloadQuery = (kind, given, context) =>
  parseDownloadQuery(kind, new Map([...given].filter(([name]) => SHARED_NAMES.has(name))), context)

interface AskedSearch {
  readonly question: SeenQuestion
  readonly members: readonly FleetMember[]
  readonly waitS: number | undefined
  /** Fails before the first byte. */
  readonly begin: (request: LineRequest) => Promise<AnswerLines>
}

async function answerSearch(
  ctx: RouteContext,
  parts: DownloadsParts,
  { question, members, waitS, begin }: AskedSearch,
): Promise<void> {
  const { verify, texts } = question
  const devices = members.map(({ device }) => device.name)
  let found = 0
  await answerLines(ctx, parts, {
    name: 'seen',
    devices,
    query: question.query,
    readsPackets: verify,
    waitS,
    begin,
    details: searchedFor(question),
    onLines: (lines) => {
      found += lines.filter((line) => 'address' in line).length
    },
    facts: () => ({ found }),
    logged: { verify, addresses: texts.length },
    ended: (outcome) => parts.seen.outcomes.ended(outcome, { verify, addresses: texts.length }),
  })
}

/** The addresses that a line of the audit names. */
const SHOWN_MAX = 100

function searchedFor({ texts, verify }: SeenQuestion): object {
  const isLong = texts.length > SHOWN_MAX
  return {
    verify,
    addressCount: texts.length,
    addresses: texts.slice(0, SHOWN_MAX),
    addressesHash: isLong ? hash('sha256', texts.join(',')) : undefined,
  }
}
