/** /stream/list over the fleet: the entries of all chosen devices, newest first, each with its `Device`. */
import { LIST_PARAMETERS } from '../../contract/device-parameters.ts'
import { takeParameters } from '../../contract/request-parameters.ts'
import { type CaptureList, collectCaptureLists } from '../../fleet/capture-lists.ts'
import { type DeviceCapture, newestOfAll } from '../../fleet/newest-of-all.ts'
import { CAPTURE_COLUMNS, csvLine } from '../../query/capture-csv.ts'
import { FLEET_PARAMETERS } from '../../query/gateway-options.ts'
import { badParameter, type ParameterValues, quote } from '../../query/query-parameters.ts'
import type { GatewayParts } from '../gateway-parts.ts'
import { selectedMembers } from '../request/fleet-selection.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../route.ts'
import { answerList, answerText } from './answer-list.ts'

/**
 * Takes the parameters of a device's list: `Limit`, `After` (here: `Next` of the page before), `From`, `To`,
 * `Format=csv`. Devices that do not answer are listed in `Unreachable` and in Capfleet-Unreachable.
 */
export async function listFleetCaptures(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const choice = takeChoice(ctx)
  const members = selectedMembers(ctx, parts)
  using leaving = requestSignal(ctx)
  const { lists, unreachable } = await collectCaptureLists(members, { maxAgeMs: 0, signal: leaving.signal })
  if (unreachable.length > 0) {
    ctx.set('Capfleet-Unreachable', unreachable.map(({ device }) => device).join(', '))
  }
  const Unreachable = unreachable.map(({ device, error }) => ({
    Device: device,
    code: error.code,
    detail: error.message,
  }))
  const { clientIdleTimeoutMs } = parts.downloads
  const page = chosenOf(lists, choice)
  if (choice.format === 'csv') await answerText(ctx, 'text/csv', csvLines(page), clientIdleTimeoutMs)
  else {
    const entries = shownEntries(page, { Unreachable })
    await answerList(ctx, { Path: '/capture/', StreamList: true }, entries, clientIdleTimeoutMs)
  }
}

/** What of the list is asked for. */
interface ListChoice extends Omit<ParameterValues<typeof LIST_PARAMETERS>, 'after'> {
  readonly after: Place | undefined
}

/** The capture that a page ended with. */
interface Place {
  readonly startNs: bigint
  readonly device: string
  readonly name: string
}

function takeChoice(ctx: RouteContext): ListChoice {
  const { after, ...choice } = takeParameters(ctx, { ...FLEET_PARAMETERS, ...LIST_PARAMETERS })
  return { ...choice, after: after === undefined ? undefined : placeOf(after) }
}

function placeOf(text: string): Place {
  const [, startNs, device, name] = /^(\d{1,20})\/([^/]+)\/(.+)$/.exec(text) ?? []
  if (startNs === undefined || device === undefined || name === undefined)
    throw badParameter('After', `must be Next of the page before, got ${quote(text)}`)
  return { startNs: BigInt(startNs), device, name }
}

/** The captures of one page, newest first; returns the `Next` of the page when there are more. */
function* chosenOf(
  lists: readonly CaptureList[],
  { limit, after, fromNs, toNs }: ListChoice,
): Generator<DeviceCapture, string | undefined> {
  const isBehind = after === undefined ? () => true : behind(after, lists)
  let given = 0
  let last: DeviceCapture | undefined
  for (const found of newestOfAll(lists)) {
    const { startNs, endNs } = found.capture
    if (!isBehind(found)) continue
    if (toNs !== undefined && startNs >= toNs) continue
    if (fromNs !== undefined && endNs !== undefined && endNs <= fromNs) continue
    if (given === limit && last !== undefined)
      return `${last.capture.startNs}/${last.device}/${last.capture.name}`
    given += 1
    last = found
    yield found
  }
  return undefined
}

/**
 * Whether a capture comes behind the place, for captures in the order of newestOfAll(). When the capture of that
 * place has gone meanwhile, those of its device that began with it may come twice: none is left out.
 */
function behind({ startNs, device, name }: Place, lists: readonly CaptureList[]) {
  const order = new Map(lists.map((list, index) => [list.device, index]))
  const at = order.get(device)
  let isPast = !lists.some((list) => list.device === device && list.captures.some((one) => one.name === name))
  return ({ device: other, capture }: DeviceCapture): boolean => {
    if (capture.startNs !== startNs) return capture.startNs < startNs
    if (other !== device) return at === undefined || (order.get(other) ?? 0) > at
    const was = isPast
    isPast ||= capture.name === name
    return was
  }
}

const BATCH_ENTRIES = 100

/** The entries as they are shown, in batches; then `rest`, and `Next` when there is a further page. */
async function* shownEntries(
  page: Generator<DeviceCapture, string | undefined>,
  rest: Readonly<Record<string, unknown>>,
): AsyncGenerator<readonly string[], Readonly<Record<string, unknown>>> {
  let batch: string[] = []
  for (;;) {
    const { value, done } = page.next()
    if (done === true) {
      yield batch
      return value === undefined ? rest : { ...rest, Next: value }
    }
    batch.push(shownEntry(value))
    if (batch.length < BATCH_ENTRIES) continue
    yield batch
    batch = []
  }
}

/** As its device sent it, to the last digit, with the device's name and links that lead there. */
function shownEntry({ device, capture: { name, json } }: DeviceCapture): string {
  const capture = parseExactly(json)
  return JSON.stringify({ ...capture, StreamName: name, Device: device, ...linksThrough(device, capture) })
}

/** ECMAScript's JSON.rawJSON and the third argument of a reviver; the type declarations do not have them yet. */
const rawJson = (JSON as unknown as { rawJSON(text: string): object }).rawJSON
type ExactReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown

/** Integers beyond 2^53, such as nanoseconds, stay as they are written. */
function parseExactly(json: string): Record<string, unknown> {
  const exactly: ExactReviver = (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && !Number.isSafeInteger(value)
      ? rawJson(source)
      : value
  return JSON.parse(json, exactly as (key: string, value: unknown) => unknown)
}

const LINK_MEMBERS = ['PCAP', 'Del', 'Link'] as const

/** A device's links are relative to itself. */
function linksThrough(device: string, capture: Readonly<Record<string, unknown>>): Record<string, string> {
  const links: Record<string, string> = {}
  for (const name of LINK_MEMBERS) {
    const link = capture[name]
    if (typeof link === 'string' && link.startsWith('/')) links[name] = `/devices/${device}${link}`
  }
  return links
}

const CSV_COLUMNS = ['Device', ...CAPTURE_COLUMNS]

function* csvLines(page: Generator<DeviceCapture, string | undefined>): Generator<string, void> {
  yield csvLine(CSV_COLUMNS)
  for (const found of page) {
    const entry = {
      ...parseExactly(found.capture.json),
      Device: found.device,
      StreamName: found.capture.name,
    }
    yield csvLine(CSV_COLUMNS.map((column) => (entry as Record<string, unknown>)[column]))
  }
}
