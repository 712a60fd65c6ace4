/** What the end of a complete body states, to a client that reads trailers and in the receipt. */
import type { BodyResult } from '../fetch/body/body.ts'
import { missingText } from './download-head.ts'
import { statusOf } from './download-status.ts'

/** Every trailer that a download can have, for its head. */
export const TRAILER_NAMES = [
  'Capfleet-Complete',
  'Capfleet-Status',
  'Capfleet-Bytes',
  'Capfleet-Missing',
  'Capfleet-Duplicates',
  'Capfleet-Sha256',
  'Capfleet-Packets',
  'Capfleet-Corrupt-Blocks',
  'Capfleet-TS-Fallbacks',
  'Capfleet-Late-Packets',
  'Capfleet-Truncated',
  'Capfleet-Next-Ns',
] as const

type Trailers = Partial<Record<(typeof TRAILER_NAMES)[number], string>>

/** `sent` describes the answer, which may be only a part of the body. */
export function endTrailers(
  result: BodyResult,
  sent: { readonly bytes: bigint; readonly sha256: string | undefined },
): Trailers {
  const status = statusOf(result)
  const missing = result.perDevice.flatMap(({ device, missing: part }) =>
    part === undefined ? [] : [{ device, ...part }],
  )
  const { isTruncated } = result
  const all: Record<keyof Trailers, string | bigint | undefined> = {
    'Capfleet-Complete': status === 'partial' || status === 'unverified' ? '0' : '1',
    'Capfleet-Status': status,
    'Capfleet-Bytes': sent.bytes,
    'Capfleet-Missing': missing.length === 0 ? undefined : missingText(missing),
    'Capfleet-Duplicates': result.duplicates,
    'Capfleet-Sha256': sent.sha256,
    'Capfleet-Packets': result.packets,
    'Capfleet-Corrupt-Blocks': result.corruptBlocks,
    'Capfleet-TS-Fallbacks': result.timeFallbacks,
    'Capfleet-Late-Packets': result.latePackets,
    'Capfleet-Truncated': isTruncated === undefined ? undefined : String(Number(isTruncated)),
    'Capfleet-Next-Ns': result.nextNs,
  }
  const said = Object.entries(all).filter(([, value]) => value !== undefined)
  return Object.fromEntries(said.map(([name, value]) => [name, String(value)]))
}
