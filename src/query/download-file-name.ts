import type { DownloadQuery } from './download-query.ts'
import { ENCODING_FILES, encodingOf } from './query-values.ts'

/**
 * What a download's file is called, at a device and at the gateway: the capture, or the
 * place whose time range it is; the times in nanoseconds, save for a whole capture. `captureName` is the full name
 * where it is known. All of it is safe in a header as it is.
 */
export function downloadFileName(
  { kind, beginNs, endNs, compression }: DownloadQuery,
  { captureName, place }: { readonly captureName: string | undefined; readonly place: string },
): string {
  const { ending } = ENCODING_FILES[encodingOf(compression)]
  const range = kind === 'single' ? '' : `_${beginNs}-${endNs}`
  return `${kind === 'timerange' ? place : captureName}${range}${ending}`
}
