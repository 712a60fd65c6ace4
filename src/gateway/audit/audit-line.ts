/**
 * The format of audit lines and how they are chained. A line is a JSON object that begins with its number and ends
 * with the hash of the previous line and its own: {"seq":7,...,"prev":"<hash>","hash":"<hash>"}. Its own hash is
 * the SHA-256 of all bytes of the line before `,"hash"`, so that anyone can recompute it.
 */
import { hash } from 'node:crypto'
import { redactedText } from '../../shared/base/redact.ts'
import type { AuditEvent } from './audit-events.ts'
import { shownQuery } from './shown-query.ts'

/** The end of a chain of lines. */
export interface ChainEnd {
  /** Sequence number of the last line, or 0 if there are no lines yet. */
  readonly seq: number
  readonly hash: string
}

/** The end of an empty chain, which the very first line continues. */
export const CHAIN_BEGIN: ChainEnd = { seq: 0, hash: '0'.repeat(64) }

/** A line's place in the chain, as the line states it. */
export interface ReadLine extends ChainEnd {
  /** Hash of the previous line. */
  readonly prev: string
}

/** Longer than any line we write. */
export const LINE_BYTES_MAX = 1_048_576

const TEXT_MAX = 4_096
const LIST_MAX = 1_000

/** Members that state how a program understood a request. Text from a caller must not be able to displace them. */
const FACTS: ReadonlySet<string> = new Set(['capture', 'devices', 'filters', 'forcedFilters', 'localTimes'])

/**
 * The members of an event as JSON, without braces. Secrets are redacted in each text separately, so that one text
 * cannot hide another; FACTS are left unchanged. Long values are truncated.
 */
export function formatAuditEvent({
  event,
  user,
  address,
  credential,
  requestId,
  details,
}: AuditEvent): string {
  const members = { event, user, address, credential, requestId, ...details }
  const shown = Object.entries(members).map(([name, value]) => [name, shownMember(name, value)])
  return JSON.stringify(Object.fromEntries(shown), (_name, value: unknown) => shortened(value)).slice(1, -1)
}

function shownMember(name: string, value: unknown): unknown {
  if (FACTS.has(name)) return value
  if (typeof value === 'string') return name === 'query' ? shownQuery(value) : redactedText(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shownMember(key, member)]))
}

function shortened(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'string' && value.length > TEXT_MAX)
    return `${value.slice(0, TEXT_MAX)}... (${value.length} characters)`
  if (Array.isArray(value) && value.length > LIST_MAX)
    return [...value.slice(0, LIST_MAX), `... (${value.length} entries)`]
  return value
}

/** The next line of a chain, including its newline, and the end of the chain after it. */
export function formatLine(
  event: string,
  at: Date,
  before: ChainEnd,
): { readonly text: string; readonly end: ChainEnd } {
  const seq = before.seq + 1
  const hashed = `{"seq":${seq},"at":"${at.toISOString()}",${event},"prev":"${before.hash}"`
  const own = hash('sha256', hashed)
  return { text: `${hashed},"hash":"${own}"}\n`, end: { seq, hash: own } }
}

const HEAD = /^\{"seq":([1-9]\d{0,15}),/
const HEAD_BYTES_MAX = 32
const TAIL = /^,"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"\}$/
const HASH_PART_BYTES = ',"hash":""}'.length + 64
const TAIL_BYTES = HASH_PART_BYTES + ',"prev":""'.length + 64

/** A line's place in the chain, given the line without its newline; undefined if the line is not as it was written. */
export function readLine(line: Buffer): ReadLine | undefined {
  const read = readPlace(line)
  if (read === undefined) return undefined
  return hash('sha256', line.subarray(0, line.length - HASH_PART_BYTES)) === read.hash ? read : undefined
}

function readPlace(line: Buffer): ReadLine | undefined {
  const seq = HEAD.exec(line.toString('latin1', 0, HEAD_BYTES_MAX))?.[1]
  const tail = TAIL.exec(line.toString('latin1', Math.max(0, line.length - TAIL_BYTES)))
  const [, prev, own] = tail ?? []
  if (seq === undefined || prev === undefined || own === undefined) return undefined
  return { seq: Number(seq), prev, hash: own }
}
