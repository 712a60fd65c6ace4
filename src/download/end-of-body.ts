/** What the end of a whole body says: to the receipt, and to a client that reads trailers. */
import type { DownloadBody } from './download-body.ts'
import type { DeviceReport, DownloadStatus } from './download-report.ts'
import type { ReceiptEnd } from './running-receipt.ts'

/** REQUIRES: all chunks of the body have been read. */
export function endOfBody(body: DownloadBody, sha256: string | undefined): ReceiptEnd {
  const trailers = body.trailers()
  const nextNs = trailers['Capfleet-Next-Ns']
  const packets = trailers['Capfleet-Packets']
  const duplicates = trailers['Capfleet-Duplicates']
  return {
    status: statusOf(trailers, body.report()),
    packets: packets === undefined ? undefined : BigInt(packets),
    nextNs: nextNs === undefined ? undefined : BigInt(nextNs),
    duplicates: duplicates === undefined ? undefined : BigInt(duplicates),
    sha256,
  }
}

/** Of a body that ended as it should, by its trailers. */
export function statusOf(
  trailers: Readonly<Record<string, string>>,
  devices: readonly DeviceReport[],
): DownloadStatus {
  if (devices.some(({ missing }) => missing !== undefined)) return 'partial'
  return trailers['Capfleet-Truncated'] === '1' ? 'truncated' : 'complete'
}

/** `bytes` are those of the answer. */
export function endTrailers(
  body: DownloadBody,
  { status, sha256 }: ReceiptEnd,
  bytes: bigint,
): Record<string, string> {
  const missing = body.report().flatMap(missingText)
  return {
    ...body.trailers(),
    'Capfleet-Complete': status === 'partial' ? '0' : '1',
    'Capfleet-Status': status,
    'Capfleet-Bytes': String(bytes),
    ...(missing.length === 0 ? {} : { 'Capfleet-Missing': missing.join(', ') }),
    ...(sha256 === undefined ? {} : { 'Capfleet-Sha256': sha256 }),
  }
}

function missingText({ device, missing }: DeviceReport): string[] {
  return missing === undefined ? [] : [`${device};from=${missing.fromNs};to=${missing.toNs}`]
}
