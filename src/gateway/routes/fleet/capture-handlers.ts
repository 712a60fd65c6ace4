/** /stream/list over the fleet: the entries of all selected devices, newest first, each with its `Device`. */
import { minuteAfter, minuteBefore } from '../../../shared/base/whole-minutes.ts'
import { LIST_PARAMETERS } from '../../../shared/contract/device-parameters.ts'
import { takeParameters } from '../../../shared/contract/request-parameters.ts'
import { CAPTURE_COLUMNS, csvLine } from '../../../shared/query/capture-csv.ts'
import { FLEET_PARAMETERS } from '../../../shared/query/download/gateway-options.ts'
import { badParameter, quote } from '../../../shared/query/query-parameters.ts'
import { readListTimes } from '../../../shared/query/time/list-times.ts'
import { parseExactly } from '../../device/device-json.ts'
import type { UnreachableDevice } from '../../fleet/questions/ask-members.ts'
import {
  type DeviceCapture,
  FleetList,
  type ListChoice,
  type ListPlace,
} from '../../fleet/questions/fleet-list.ts'
import { isFiltered } from '../request/caller-bounds.ts'
import { selectedMembers } from '../request/fleet-selection.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import { unreachableHeader } from '../request/unreachable-header.ts'
import { answerList, answerText } from './answer-list.ts'
import type { FleetParts } from './fleet-parts.ts'
import { linkThrough } from './link-through.ts'

/** How many captures are read before the answer begins. Devices that fail before that are listed in the header. */
const HELD_MAX = 10_000

/**
 * Accepts the parameters of a device's list: `StreamName`, `Limit`, `After` (here: `Next` of the previous page),
 * `From`, `To`, `Format=csv`. Devices that do not answer are listed in `Unreachable` and in Capfleet-Unreachable.
 * Those that stop answering after the answer has begun are only in `Unreachable`; a table is cut off then.
 */
export async function listFleetCaptures(ctx: RouteContext, parts: FleetParts): Promise<void> {
  const { format, limit, after, ...asked } = takeChoice(ctx, parts)
  const members = selectedMembers(ctx, parts)
  using leaving = requestSignal(ctx)
  const { signal } = leaving
  const isCoarse = isFiltered(ctx)
  const choice = isCoarse ? inWholeMinutes(asked) : asked
  const place = after === undefined ? undefined : await placeOf(after, parts, { isCoarse, signal })
  const list = new FleetList(members, { ...choice, after: place, most: limit + 1 }, signal)
  const show = isCoarse ? uncounted : shown
  const page = await heldFirst(pageOf(list, limit, isCoarse ? coarseText : placeText), HELD_MAX)
  const { unreachable } = list
  if (unreachable.length > 0) {
    ctx.set('Capfleet-Unreachable', unreachableHeader(unreachable.map(({ device }) => device)))
  }
  const { clientIdleTimeoutMs } = parts.downloads
  if (format === 'csv') {
    const lines = csvLines(page, show, () => refuseToEnd(list, unreachable.length))
    await answerText(ctx, 'text/csv', lines, clientIdleTimeoutMs)
  } else {
    const entries = shownEntries(page, show, () => ({ Unreachable: list.unreachable.map(shownFailure) }))
    await answerList(ctx, { Path: '/capture/', StreamList: true }, entries, clientIdleTimeoutMs)
  }
}

function shownFailure({ device, error }: UnreachableDevice): Record<string, string> {
  return { Device: device, code: error.code, detail: error.message }
}

/** A table lists missing devices only in its head: fails with the error of one that has failed since. */
function refuseToEnd(list: FleetList, failed: number): void {
  const { unreachable } = list
  if (unreachable.length > failed) throw unreachable.at(-1)?.error
}

/** Which part of the list is requested. */
interface Choice extends Omit<ListChoice, 'most' | 'after'> {
  readonly limit: number
  /** `Next` of the previous page. */
  readonly after: string | undefined
  readonly format: 'json' | 'csv'
}

function takeChoice(ctx: RouteContext, { limits: { timeZone: zone } }: FleetParts): Choice {
  const parameters = takeParameters(ctx, { ...FLEET_PARAMETERS, ...LIST_PARAMETERS })
  const { captureName: name, limit = Infinity, after, format } = parameters
  const nowNs = BigInt(Date.now()) * 1_000_000n
  const { fromNs, toNs, timeZone } = readListTimes(parameters, { zone, nowNs })
  if (timeZone !== undefined) ctx.set('Capfleet-Time-Zone', timeZone)
  return { name, limit, after, fromNs, toNs, format }
}

function placeText({ device, capture: { startNs, name } }: DeviceCapture): string {
  return `${startNs}/${device}/${name}`
}

/** The same without the time of the first packet. */
function coarseText({ device, capture: { name } }: DeviceCapture): string {
  return `/${device}/${name}`
}

/**
 * The place that `Next` of a page names. Fails with bad-parameter, or with the error of the device that is asked for
 * it.
 */
async function placeOf(
  text: string,
  parts: FleetParts,
  { isCoarse, signal }: { readonly isCoarse: boolean; readonly signal: AbortSignal },
): Promise<ListPlace> {
  const [, startNs = '', device, name] = /^(\d{0,20})\/([^/]+)\/(.+)$/s.exec(text) ?? []
  if (device === undefined || name === undefined || (startNs === '') !== isCoarse)
    throw badParameter('After', `must be Next of the previous page, got ${quote(text)}`)
  if (!isCoarse) return { startNs: BigInt(startNs), device, name }
  const member = parts.fleet.find(device)
  const list = new FleetList(member === undefined ? [] : [member], { name, most: HELD_MAX }, signal)
  for await (const { capture } of list.captures())
    if (capture.name === name) return { startNs: capture.startNs, device, name }
  for (const { error } of list.unreachable) throw error
  throw badParameter(
    'After',
    `names a capture that no longer exists: ${quote(text)}; start again without After`,
  )
}

/** The captures of one page; returns its `Next` if there are more. */
type Page = AsyncGenerator<DeviceCapture, string | undefined>

async function* pageOf(list: FleetList, limit: number, textOf: (last: DeviceCapture) => string): Page {
  let given = 0
  let last: DeviceCapture | undefined
  for await (const found of list.captures()) {
    if (given === limit && last !== undefined) return textOf(last)
    given += 1
    last = found
    yield found
  }
  return undefined
}

/** The same page, with the first captures already read. */
async function heldFirst(page: Page, most: number): Promise<Page> {
  const held: DeviceCapture[] = []
  let step = await page.next()
  for (; step.done !== true && held.length < most; step = await page.next()) held.push(step.value)
  return (async function* () {
    yield* held
    if (step.done === true) return step.value
    yield step.value
    return yield* page
  })()
}

const BATCH_ENTRIES = 100

/**
 * The entries as they are shown, in batches; then the members that `rest` returns, and `Next` if there is another
 * page.
 */
async function* shownEntries(
  page: Page,
  show: Shown,
  rest: () => Readonly<Record<string, unknown>>,
): AsyncGenerator<readonly string[], Readonly<Record<string, unknown>>> {
  let batch: string[] = []
  for (;;) {
    const { value, done } = await page.next()
    if (done === true) {
      yield batch
      return value === undefined ? rest() : { ...rest(), Next: value }
    }
    batch.push(JSON.stringify(show(value)))
    if (batch.length < BATCH_ENTRIES) continue
    yield batch
    batch = []
  }
}

type Entry = Readonly<Record<string, unknown>>
type Shown = (found: DeviceCapture) => Entry

/** Exactly as its device sent it, plus the device's name and links through the gateway. */
function shown({ device, capture: { name, json } }: DeviceCapture): Entry {
  const capture = parseExactly(json) as Record<string, unknown>
  return { ...capture, StreamName: name, Device: device, ...linksThrough(device, capture) }
}

/**
 * The members shown to callers with a filter, and what each must be: a third-party device could put counts and times
 * into any text, and a description may contain them.
 */
const UNCOUNTED_MEMBERS: Readonly<Record<string, (value: unknown) => boolean>> = {
  id: (value) => /^\d{1,6}$/.test(String(value)),
  Path: isText,
  PCAP: isText,
  Del: isText,
  Link: isText,
  IsActive: (value) => typeof value === 'boolean',
  Type: isWord,
  StreamName: isText,
  State: isWord,
  Device: isText,
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isWord(value: unknown): boolean {
  return /^[A-Za-z_-]{1,32}$/.test(String(value))
}

/**
 * Its times are those of the first and last packet, filtered out or not, so they are rounded outward to whole minutes.
 */
function uncounted(found: DeviceCapture): Entry {
  const entry = shown(found)
  const { startNs } = found.capture
  const [, endNs] = /^(\d{1,20})$/.exec(String(entry.EndTS)) ?? []
  const told = Object.entries(entry).filter(([name, value]) => UNCOUNTED_MEMBERS[name]?.(value) === true)
  return {
    ...Object.fromEntries(told),
    StartTS: String(minuteBefore(startNs)),
    ...(endNs === undefined ? {} : { EndTS: String(minuteAfter(BigInt(endNs))) }),
  }
}

/** Rounds outward: exact limits would reveal the times of a capture's first and last packet by bisection. */
function inWholeMinutes<Asked extends Pick<ListChoice, 'fromNs' | 'toNs'>>(asked: Asked): Asked {
  const { fromNs, toNs } = asked
  return {
    ...asked,
    fromNs: fromNs === undefined ? undefined : minuteBefore(fromNs),
    toNs: toNs === undefined ? undefined : minuteAfter(toNs),
  }
}

const LINK_MEMBERS = ['PCAP', 'Del', 'Link'] as const

function linksThrough(device: string, capture: Readonly<Record<string, unknown>>): Record<string, string> {
  const links: Record<string, string> = {}
  for (const name of LINK_MEMBERS) {
    const link = linkThrough(device, capture[name])
    if (link !== undefined) links[name] = link
  }
  return links
}

const CSV_COLUMNS = ['Device', ...CAPTURE_COLUMNS]

/** The table; `end` is called when all lines have been yielded, and may throw. */
async function* csvLines(page: Page, show: Shown, end: () => void): AsyncGenerator<string, void> {
  yield csvLine(CSV_COLUMNS)
  for await (const found of page) {
    const entry = show(found)
    yield csvLine(CSV_COLUMNS.map((column) => entry[column]))
  }
  end()
}
