/**
 * The form of a line, and how lines hold together. A line is a JSON object that begins with its number and
 * ends with the hash of the line before and its own: {"seq":7,...,"prev":"<hash>","hash":"<hash>"}. Its own
 * hash is the SHA-256 of all of the line's bytes before `,"hash"`, so that anybody can compute it.
 */
import { hash } from 'node:crypto'
import { redactedText } from '../../shared/base/redact.ts'
import type { AuditEvent } from './audit-events.ts'
import { shownQuery } from './shown-query.ts'

/** Where a chain of lines has come to. */
export interface ChainEnd {
  /** Of the last line; 0: there is none. */
  readonly seq: number
  readonly hash: string
}

/** What the first line of all goes on from. */
export const CHAIN_BEGIN: ChainEnd = { seq: 0, hash: '0'.repeat(64) }

/** What a line says of its place in the chain. */
export interface ReadLine extends ChainEnd {
  /** The hash of the line before. */
  readonly prev: string
}

/** Longer than any line that is written. */
export const LINE_BYTES_MAX = 1_048_576

const TEXT_MAX = 4_096
const LIST_MAX = 1_000

/** Members that say how a program has understood a request. No text of a caller may hide them. */
const FACTS: ReadonlySet<string> = new Set(['capture', 'devices', 'filters', 'forcedFilters', 'localTimes'])

/**
 * The members of an event as JSON, without braces. Secrets are taken out of each text by itself, so that no text can hide
 * another one; facts stay as they are. What is long is cut.
 */
export function formatEvent({ event, user, address, credential, requestId, details }: AuditEvent): string {
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

/** The next line of a chain, with its line end, and where the chain has come to with it. */
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

/** The place of a line, given without its line end, in the chain. undefined: it is not as it was written. */
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
