/** Which part of a file to return for a request, according to RFC 9110, sections 13 and 14. */
import type { IncomingMessage } from 'node:http'

/** Both ends of a 206 part are inclusive. */
export type WantedPart =
  | { readonly status: 200 | 304 | 416 }
  | { readonly status: 206; readonly first: number; readonly last: number }

export interface FileFacts {
  /** Strong, with its quotes. */
  readonly etag: string
  readonly bytes: number
}

const WHOLE: WantedPart = { status: 200 }
const UNSATISFIABLE: WantedPart = { status: 416 }

/** A Range that is malformed or has several parts is ignored: the status tells the client that it gets everything. */
export function wantedPart({ method, headers }: IncomingMessage, { etag, bytes }: FileFacts): WantedPart {
  if (hasCopy(headers['if-none-match'], etag)) return { status: 304 }
  const { range, 'if-range': ifRange } = headers
  if (range === undefined || method !== 'GET') return WHOLE
  // A date never matches: the age of the file is unknown here.
  if (ifRange !== undefined && ifRange !== etag) return WHOLE
  return partOf(range, bytes)
}

/** Whether the client has the file; a weak ETag suffices here. */
function hasCopy(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch.trim() === '*') return true
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === etag)
}

function partOf(range: string, bytes: number): WantedPart {
  const [, from = '', to = ''] = /^bytes=[\s,]*(\d*)-(\d*)[\s,]*$/i.exec(range) ?? []
  if (from === '' && to === '') return WHOLE
  if (from === '') return lastBytes(Number(to), bytes)
  const first = Number(from)
  const last = to === '' ? Number.POSITIVE_INFINITY : Number(to)
  if (first > last) return WHOLE
  if (first >= bytes) return UNSATISFIABLE
  return { status: 206, first, last: Math.min(last, bytes - 1) }
}

function lastBytes(count: number, bytes: number): WantedPart {
  if (count === 0) return UNSATISFIABLE
  // The last bytes of an empty file are empty, which no Content-Range can express.
  if (bytes === 0) return WHOLE
  return { status: 206, first: Math.max(0, bytes - count), last: bytes - 1 }
}
