/**
 * Requests that use Range to resume an answer that is generated for each request. RFC 9110 allows sending the whole
 * answer then, but GNU wget skips as many bytes of it as its file has and reports success: the file may then contain
 * parts of two different answers, with the mark of a cut between them.
 */
import type { IncomingMessage } from 'node:http'
import { CapfleetError } from '../base/error.ts'

/**
 * Fails with range-unsupported for a GET whose Range does not begin with the first byte; `wayOn` says how to resume.
 * Everything else is ignored, as RFC 9110 specifies: a malformed Range, another unit, another method, and a Range with
 * an If-Range, which cannot match because the answer has no validator.
 */
export function refuseLaterRange({ method, headers }: IncomingMessage, wayOn: string): void {
  const { range, 'if-range': ifRange } = headers
  if (range === undefined || ifRange !== undefined || method !== 'GET' || !beginsLater(range)) return
  throw new CapfleetError(
    'range-unsupported',
    `a download is produced again for each request, so ${range} may not match the bytes that the client has; ${wayOn}`,
    { param: 'Range' },
  )
}

/**
 * The text of a problem, lengthened by a space if its length equals the first byte of Range: `curl -C -` takes such an
 * answer, whatever its status, as proof that the file is complete, and exits with 0.
 */
export function unlikeRange(text: string, range: string | undefined): string {
  if (range === undefined) return text
  const firsts = intervals(range)?.map(({ first }) => Number(first)) ?? []
  return firsts.includes(Buffer.byteLength(text)) ? `${text} ` : text
}

/** Any of several ranges counts; a suffix range does not begin with the first byte. */
function beginsLater(range: string): boolean {
  return intervals(range)?.some(({ first }) => first === '' || Number(first) > 0) ?? false
}

interface Interval {
  /** Empty: `last` bytes from the end. */
  readonly first: string
  readonly last: string
}

/** Returns undefined if these are not byte ranges as described in RFC 9110, section 14.1. */
function intervals(range: string): readonly Interval[] | undefined {
  const begin = range.indexOf('=')
  if (range.slice(0, begin).toLowerCase() !== 'bytes') return undefined
  const parts = range
    .slice(begin + 1)
    .split(',')
    .map((part) => part.trim())
  const read = parts.filter((part) => part !== '').map((part) => /^(\d*)-(\d*)$/.exec(part))
  const found = read.flatMap((match) => {
    const [, first = '', last = ''] = match ?? []
    const isValid = first === '' || last === '' ? first !== last : Number(first) <= Number(last)
    return isValid ? [{ first, last }] : []
  })
  return found.length === read.length ? found : undefined
}
