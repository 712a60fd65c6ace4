/** What a row of a program's table says: where, who may, what is asked and answered, and the handler. */
import type { z } from 'zod'
import type { ErrorCode } from '../base/error.ts'
import type { Access } from '../base/scopes.ts'
import type { Parameter, ParameterRows, ReadContext } from '../query/query-parameters.ts'
import { COMMON_PARAMETERS, isHere } from '../query/read-parameters.ts'

/** All of a row but its handler: what there is to know of an endpoint. */
export interface Endpoint {
  /** GET stands for HEAD too, save for a change. */
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** In the syntax of path-to-regexp 8; upper and lower case and a final slash matter. */
  readonly path: string
  readonly scope: Access
  /** What callers get who may have packets that pass a filter only. */
  readonly filtered: FilteredView
  /** What the endpoint reveals about other users. */
  readonly others: OthersView
  /** What it changes, if anything: such rows are not for HEAD, nor for pages of other sites, and leave lines in the audit. */
  readonly changes?: Changed
  /** It shows what is known of other users: reading it leaves a line in the audit. */
  readonly isRecordedRead?: true
  /** What descriptions of the API list it under: a name of GROUPS. */
  readonly group: Group
  /** What it does, in a sentence or two. */
  readonly says: string
  /** The rows of its parameters; undefined: the query string is not looked at. */
  readonly parameters?: readonly ParameterRows[]
  /** It makes something that lasts: a parameter that it does not have is refused, not ignored. */
  readonly takesKnownOnly?: true
  /** Which of the rows count. */
  readonly context?: ReadContext
  readonly requestHeaders?: readonly HeaderRow[]
  readonly answers: readonly Answer[]
  /** Beside those that any request may meet. */
  readonly errors: readonly ErrorCode[]
}

export type Changed = 'devices' | 'export' | 'schedule' | 'session' | 'token' | 'ticket'

/**
 * What an endpoint gives to callers of a gateway who may have packets that pass a filter only (`filter` of their bounds): bytes
 * of other packets are hidden from them, and so must be what is counted of those.
 */
export const FILTERED_VIEWS = {
  passing: 'At a gateway, callers with a filter get only what passes it, and what was created with it.',
  uncounted: 'At a gateway, callers with a filter get it without packet counts.',
  refused:
    'At a gateway, callers with a filter are rejected, because it counts packets that their filter hides.',
  nothing: '',
} as const

/** nothing: it tells nothing of packets. */
export type FilteredView = keyof typeof FILTERED_VIEWS

/**
 * What an endpoint reveals about users other than the caller: what they request and what they took. Devices outside the
 * caller's bounds need no decision per endpoint: handlers get a fleet without them.
 */
export const OTHERS_VIEWS = {
  own: "Callers get their own entries; with the scope audit:read they also get other users' entries, within the caller's bounds.",
  emptied:
    'For running downloads, callers without the scope audit:read get only their number and kind; at a gateway, so do callers with bounds.',
  named: 'It names users and the streams that they hold, but never their queries.',
  said: '',
  nothing: '',
} as const

/** said: `says` describes it. nothing: it reveals nothing about other users. */
export type OthersView = keyof typeof OTHERS_VIEWS

/** What each group of endpoints has. */
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
  /** By media type. JSON has a schema with an `id`, its name in descriptions; of a text or bytes `says` tells what is in them. */
  readonly bodies: Readonly<Record<string, z.ZodType | 'text' | 'bytes'>>
  readonly headers?: readonly HeaderRow[]
  /** For clients that say "TE: trailers". */
  readonly trailers?: readonly HeaderRow[]
}

export interface HeaderRow {
  readonly name: string
  readonly says: string
}

/** The parameters of an endpoint, with those that every path has. */
export function parametersOf({
  parameters,
  context = {},
}: Pick<Endpoint, 'parameters' | 'context'>): readonly Parameter[] {
  if (parameters === undefined) return []
  return [...parameters, COMMON_PARAMETERS]
    .flatMap((rows): Parameter[] => Object.values(rows))
    .filter((row) => isHere(row, context))
}

/** An answer of JSON. */
export function json(schema: z.ZodType, says: string): Answer {
  return { says, bodies: { 'application/json': schema } }
}
