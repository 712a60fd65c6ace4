import { statusOf } from './end-of-body.ts'
import { passedTrailers } from './passed-trailers.ts'
import { type RelayEnd, type RelayExchange, type RelaySource, relayDownload } from './relay.ts'
import { reportRelay } from './relay-report.ts'
import type { ReceiptEnd, RunningReceipt } from './running-receipt.ts'

export interface SendRelayedOptions extends RelayExchange {
  /** Called when the body is whole, before the client can see its end. */
  readonly onEnd: (end: ReceiptEnd) => void
}

/** relayDownload with its receipt. */
export async function sendRelayed(
  source: RelaySource,
  receipt: RunningReceipt,
  { onEnd, ...exchange }: SendRelayedOptions,
): Promise<void> {
  const { device } = source
  let whole: RelayEnd | undefined
  receipt.reportBy(() => [
    reportRelay({
      device,
      bytes: receipt.bytes,
      trailers: whole?.trailers ?? {},
      complete: whole !== undefined,
    }),
  ])
  await relayDownload(source, {
    ...exchange,
    onBytes: (bytes, piece) => {
      receipt.sent(piece)
      exchange.onBytes(bytes, piece)
    },
    onWhole: (end) => {
      whole = end
      onEnd(receiptEnd(end))
    },
  })
}

function receiptEnd({ trailers, sha256 }: RelayEnd): ReceiptEnd {
  const passed = passedTrailers(trailers)
  const packets = passed['Capfleet-Packets']
  const nextNs = passed['Capfleet-Next-Ns']
  return {
    status: statusOf(passed, []),
    packets: packets === undefined ? undefined : BigInt(packets),
    nextNs: nextNs === undefined ? undefined : BigInt(nextNs),
    sha256,
  }
}
