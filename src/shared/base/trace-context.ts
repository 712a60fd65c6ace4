/**
 * The trace that a request belongs to: the headers traceparent and tracestate of W3C Trace Context. Malformed headers
 * are ignored, and a new trace begins: callers are not trusted with what goes into log lines and to devices.
 */
import { randomFillSync } from 'node:crypto'

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** Id of the caller's span, 16 hexadecimal digits. */
  readonly spanId: string
  /** Id of the parent span, or undefined if the trace begins here. */
  readonly parentId: string | undefined
  /** Whether the originator of the trace records it. */
  readonly isSampled: boolean
  /** What tracing systems on the way added; "" if nothing. */
  readonly state: string
}

/** The headers as Node provides them: repeated headers are joined by ", ". */
export interface TraceHeaders {
  readonly traceparent?: string | string[] | undefined
  readonly tracestate?: string | string[] | undefined
}

/** The span of a request in the trace of its caller, or in a new one, which is recorded with probability `ratio`. */
export function continueTrace({ traceparent, tracestate }: TraceHeaders, ratio = 0): TraceContext {
  const parent = parseTraceparent(String(traceparent ?? ''))
  if (parent !== undefined)
    return { ...parent, spanId: newSpanId(), state: parseTracestate(String(tracestate ?? '')) }
  const traceId = randomHex(16)
  return { traceId, spanId: newSpanId(), parentId: undefined, isSampled: Math.random() < ratio, state: '' }
}

/** A child span, such as a request to a device. */
export function childOf(context: TraceContext): TraceContext {
  return { ...context, spanId: newSpanId(), parentId: context.spanId }
}

/** The headers that propagate it. */
export function traceHeaders({ traceId, spanId, isSampled, state }: TraceContext): Record<string, string> {
  const traceparent = `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
  return state === '' ? { traceparent } : { traceparent, tracestate: state }
}

function newSpanId(): string {
  return randomHex(8)
}

/**
 * Random bytes for many ids at a time, because requesting a few takes as long. They only name spans; nothing depends
 * on their secrecy.
 */
const RANDOM = Buffer.alloc(4_096)
let randomUsed = RANDOM.length

function randomHex(bytes: number): string {
  if (randomUsed + bytes > RANDOM.length) {
    randomFillSync(RANDOM)
    randomUsed = 0
  }
  const from = randomUsed
  randomUsed += bytes
  return RANDOM.toString('hex', from, randomUsed)
}

/** Longer headers are dropped unparsed: both come from untrusted clients, with every request. */
const TRACEPARENT_LENGTH_MAX = 256
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const SAMPLED = 1

/** Future versions begin like 00 and may continue after a dash; ff is invalid. */
function parseTraceparent(
  text: string,
): Pick<TraceContext, 'traceId' | 'parentId' | 'isSampled'> | undefined {
  if (text.length > TRACEPARENT_LENGTH_MAX) return undefined
  const [, version, traceId = '', parentId = '', flags = '', more] = TRACEPARENT.exec(text) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 }
}

/** A longer tracestate is dropped unparsed. */
const GIVEN_STATE_LENGTH_MAX = 4_096
const MEMBERS_MAX = 32
/** At least this much must be passed on; anything beyond is cut off by whole members, long ones first. */
const STATE_LENGTH_MAX = 512
const LONG_MEMBER = 128
/** Key of a system, or of a tenant of one. */
const KEY = /^([a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})$/
/** Printable, without comma and equals sign, and no space at the end. */
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

/** The members of a tracestate, or "" if it is too long or any part of it is malformed. */
function parseTracestate(text: string): string {
  if (text.length > GIVEN_STATE_LENGTH_MAX) return ''
  const members = text
    .split(',')
    // A header contains no other whitespace than spaces and tabs; trim() would remove a few more, which Node rejects.
    .map((member) => member.trim())
    .filter((member) => member !== '')
  const keys = members.map((member) => member.split('=', 1)[0] ?? '')
  const isRight = members.every((member, at) => isMember(member, keys[at] ?? ''))
  if (!isRight || members.length > MEMBERS_MAX || new Set(keys).size < keys.length) return ''
  return shortened(members)
}

function isMember(member: string, key: string): boolean {
  return KEY.test(key) && member[key.length] === '=' && VALUE.test(member.slice(key.length + 1))
}

function shortened(members: readonly string[]): string {
  const kept = [...members]
  const isTooLong = () => kept.join(',').length > STATE_LENGTH_MAX
  while (isTooLong()) {
    const long = kept.findLastIndex((member) => member.length > LONG_MEMBER)
    kept.splice(long === -1 ? kept.length - 1 : long, 1)
  }
  return kept.join(',')
}
