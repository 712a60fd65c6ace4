/** What the head of the answer to a download says. */
import { listText } from '../../../shared/base/list-text.ts'
import { ENCODING_FILES, type Encoding } from '../../../shared/query/download/query-values.ts'
import { ClientFailure } from '../../client-failure.ts'
import type { Received } from '../../transport.ts'
import { shownNs } from '../common/list-output.ts'

/** An answer that did not reach its end, which is worth a retry. */
export function brokenOff(message: string): ClientFailure {
  return new ClientFailure('incomplete', message, { code: 'connection-broken', canRetry: true })
}

/** Statements in the head that the user should see. */
export function notesOf({ headers }: Received): readonly string[] {
  const ignored = headers.get('capfleet-ignored')
  const goneBeforeNs = headers.get('capfleet-aged-out-before')
  const damaged = headers.get('capfleet-damaged-segments')
  const missing = headers.get('capfleet-missing')
  return [
    ...(ignored === null ? [] : [`the gateway ignores ${ignored}`]),
    ...(goneBeforeNs === null
      ? []
      : [`packets before ${shownNs(goneBeforeNs)} were overwritten; the download is complete from then on`]),
    ...(damaged === null || damaged === '0'
      ? []
      : [`packets of ${damaged} segments are lost: their blocks are damaged`]),
    ...(missing === null ? [] : [`devices left out: ${missingText(missing)}`]),
  ]
}

/** "lon1;from=1793610060000000000;to=1793610070000000000, ..." with readable times. */
function missingText(header: string): string {
  const parts = header
    .split(', ')
    .map((part) =>
      part.replaceAll(/;(from|to)=(\d+)/g, (_text, end: string, ns: string) => ` ${end} ${shownNs(ns)}`),
    )
  return listText(parts)
}

/** Fails with a ClientFailure if it is not a capture file. */
export function encodingOf({ headers }: Received): Encoding {
  const mediaType = headers.get('content-type') ?? ''
  const [encoding] =
    Object.entries(ENCODING_FILES).find(([, file]) => mediaType.startsWith(file.mediaType)) ?? []
  if (encoding !== undefined) return encoding as Encoding
  throw new ClientFailure('device', `the response is not a capture file but ${mediaType || 'of no type'}`, {
    code: 'no-capture-file',
  })
}
