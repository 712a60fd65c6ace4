/** A route of a program's table: path, access, parameters and answers, and the handler. */
import type { z } from 'zod'
import type { ErrorCode } from '../base/error.ts'
import type { Access } from '../base/scopes.ts'
import type { Parameter, ParameterRows, ReadContext } from '../query/query-parameters.ts'
import { COMMON_PARAMETERS, isHere } from '../query/read-parameters.ts'

/** A route without its handler: everything to know about an endpoint. */
export interface Endpoint {
  /** GET includes HEAD, except for a change. */
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** In the syntax of path-to-regexp 8; upper and lower case and a final slash matter. */
  readonly path: string
  readonly scope: Access
  /** What it returns to callers who may only have packets that pass a filter. */
  readonly filtered: FilteredView
  /** What the endpoint reveals about other users. */
  readonly others: OthersView
  /** What it changes, if anything: such rows are not for HEAD, nor for pages of other sites, and leave lines in the audit. */
  readonly changes?: Changed
  /** It shows what is known of other users: reading it leaves a line in the audit. */
  readonly isRecordedRead?: true
  /** Its section in descriptions of the API: a name of GROUPS. */
  readonly group: Group
  /** What it does, in one or two sentences. */
  readonly says: string
  /** The rows of its parameters; undefined: the query string is ignored. */
  readonly parameters?: readonly ParameterRows[]
  /** Whether POST takes the parameters in its body too, as a form: for queries that are too long for an address. */
  readonly takesForm?: true
  /** The parameter that a plain text in the body of a POST is, instead of a form. */
  readonly takesText?: Parameter
  /** What the body of the request is, if not a form; the body is required. */
  readonly takesFile?: string
  /** Whether it creates something that lasts: an unknown parameter is then rejected, not ignored. */
  readonly takesKnownOnly?: true
  /** Determines which of the rows apply. */
  readonly context?: ReadContext
  readonly requestHeaders?: readonly HeaderRow[]
  readonly answers: readonly Answer[]
  /** In addition to those of any request. */
  readonly errors: readonly ErrorCode[]
}

export type Changed = 'devices' | 'export' | 'queue' | 'schedule' | 'session' | 'token' | 'ticket'

/**
 * What an endpoint of a gateway returns to callers who may only have packets that pass a filter (`filter` of their
 * bounds): bytes of other packets are hidden from them, and so must be anything that counts those.
 */
export const FILTERED_VIEWS = {
  passing: 'At a gateway, callers with a filter get only what passes it, and what was created with it.',
  uncounted: 'At a gateway, callers with a filter get it without packet counts.',
  verified: 'At a gateway, callers with a filter need Verify=1, and only packets that pass it are counted.',
  refused:
    'At a gateway, callers with a filter are rejected, because it counts packets that their filter hides.',
  nothing: '',
} as const

/** nothing: it reveals nothing about packets. */
export type FilteredView = keyof typeof FILTERED_VIEWS

/**
 * What an endpoint reveals about users other than the caller: what they request and what they downloaded. Devices
 * outside the caller's bounds need no decision per endpoint: handlers get a fleet without them.
 */
export const OTHERS_VIEWS = {
  own: "Callers get their own entries; with the scope audit:read they also get other users' entries, within the caller's bounds.",
  emptied:
    'For running downloads, callers without the scope audit:read get only their number and kind; at a gateway, so do callers with bounds.',
  named:
    "It names users and the streams that they hold, but never their filters. Captures, ranges and bytes are shown of the caller's own requests; " +
    "with the scope audit:read also of other users' requests, within the caller's bounds.",
  said: '',
  nothing: '',
} as const

/** said: described by `says`. nothing: it reveals nothing about other users. */
export type OthersView = keyof typeof OTHERS_VIEWS

/** The description of each group of endpoints. */
export const GROUPS = {
  Downloads: 'Packets, as PCAP files.',
  Lists: 'Captures and their parts.',
  Captures: 'Capturing: state, start, stop, schedule, deletion.',
  System: 'The machine: sensors, ports, disks, clocks, events.',
  Other: 'Paths that only some devices have.',
  Exports: 'Downloads that run as jobs, and their schedules.',
  Tokens: 'Credentials derived from other credentials: tokens for programs, tickets for links.',
  Page: 'The web page, and signing in there.',
  Gateway: 'The gateway itself: devices, queue, receipts.',
  Operation: 'For operators of the program.',
} as const

export type Group = keyof typeof GROUPS

export interface Route<Parts, Context> extends Endpoint {
  /** Answers a request, or throws a CapfleetError before the first byte. */
  readonly handler: (ctx: Context, parts: Parts) => Promise<void>
}

export interface Answer {
  /** Default: 200. */
  readonly status?: number
  readonly says: string
  /**
   * By media type. JSON has a schema with an `id`, its name in descriptions; for text or bytes `says` describes the
   * contents.
   */
  readonly bodies: Readonly<Record<string, z.ZodType | 'text' | 'bytes'>>
  readonly headers?: readonly HeaderRow[]
  /** For clients that send "TE: trailers". */
  readonly trailers?: readonly HeaderRow[]
}

export interface HeaderRow {
  readonly name: string
  readonly says: string
}

/** The parameters of an endpoint, including those that every path has. */
export function parametersOf({
  parameters,
  context = {},
}: Pick<Endpoint, 'parameters' | 'context'>): readonly Parameter[] {
  if (parameters === undefined) return []
  return [...parameters, COMMON_PARAMETERS]
    .flatMap((rows): Parameter[] => Object.values(rows))
    .filter((row) => isHere(row, context))
}

/** The routes, and for each that reads and takes a form the same one for POST. */
export function withForms<Row extends Endpoint>(routes: readonly Row[]): readonly Row[] {
  return routes.flatMap((route) =>
    route.takesForm === true && route.method === 'GET' ? [route, { ...route, method: 'POST' }] : [route],
  )
}

/** A JSON answer. */
export function json(schema: z.ZodType, says: string): Answer {
  return { says, bodies: { 'application/json': schema } }
}
