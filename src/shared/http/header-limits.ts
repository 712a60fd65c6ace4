/** Maximum lengths of the headers that we read, checked before anything is parsed. */
import type { IncomingHttpHeaders } from 'node:http'
import { CapfleetError } from '../base/error.ts'

/** In characters. Browsers send all cookies of a host, and in Referer the address of a page with its query. */
const LENGTHS_MAX = {
  accept: 4_096,
  'accept-encoding': 4_096,
  authorization: 16_384,
  'capfleet-caller': 4_096,
  'capfleet-device': 4_096,
  cookie: 32_768,
  host: 1_024,
  'idempotency-key': 1_024,
  'if-none-match': 4_096,
  'if-range': 1_024,
  'last-event-id': 1_024,
  origin: 4_096,
  range: 1_024,
  referer: 16_384,
  'sec-fetch-dest': 64,
  'sec-fetch-site': 64,
  te: 1_024,
  'transfer-encoding': 1_024,
  'x-capfleet-form': 1_024,
  'x-forwarded-for': 4_096,
} as const satisfies Record<string, number>

/** The names of the headers that have a limit, in lower case. */
export const LIMITED_HEADERS: readonly string[] = Object.keys(LENGTHS_MAX)

/** Fails with bad-parameter for a header that is too long. */
export function refuseLongHeaders(headers: IncomingHttpHeaders): void {
  for (const [name, lengthMax] of Object.entries(LENGTHS_MAX)) {
    const value = headers[name]
    if (value === undefined || value.length <= lengthMax) continue
    throw new CapfleetError('bad-parameter', `the header ${name} is longer than ${lengthMax} characters`, {
      param: name,
    })
  }
}
