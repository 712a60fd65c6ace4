import type { DownloadTotals, PcapngTotals } from '../../native/addon.ts'

export const NO_TOTALS: DownloadTotals = {
  packets: 0n,
  bytes: 0n,
  skippedPackets: 0n,
  outputBytes: 0n,
  readPackets: 0n,
  readBytes: 0n,
  excludedPackets: 0n,
  duplicates: 0n,
  passedBlocks: 0n,
  ruledOutSegments: 0n,
  corruptBlocks: 0n,
  firstNs: undefined,
  lastNs: undefined,
  vendorTimeFallbacks: 0n,
  latePackets: 0n,
  truncated: false,
  nextNs: undefined,
}

/** The totals of a body that one download begins and another one continues. */
export function addTotals(before: DownloadTotals, after: DownloadTotals): DownloadTotals {
  return {
    packets: before.packets + after.packets,
    bytes: before.bytes + after.bytes,
    skippedPackets: before.skippedPackets + after.skippedPackets,
    outputBytes: before.outputBytes + after.outputBytes,
    readPackets: before.readPackets + after.readPackets,
    readBytes: before.readBytes + after.readBytes,
    excludedPackets: before.excludedPackets + after.excludedPackets,
    duplicates: before.duplicates + after.duplicates,
    passedBlocks: before.passedBlocks + after.passedBlocks,
    ruledOutSegments: before.ruledOutSegments + after.ruledOutSegments,
    corruptBlocks: before.corruptBlocks + after.corruptBlocks,
    firstNs: before.firstNs ?? after.firstNs,
    lastNs: after.lastNs ?? before.lastNs,
    vendorTimeFallbacks: before.vendorTimeFallbacks + after.vendorTimeFallbacks,
    latePackets: before.latePackets + after.latePackets,
    truncated: after.truncated,
    nextNs: after.nextNs,
    ...(after.pcapng === undefined ? {} : { pcapng: addPcapng(before.pcapng, after.pcapng) }),
  }
}

/** A later download numbers the interfaces in the same way, and may have more of them. */
function addPcapng(before: PcapngTotals | undefined, after: PcapngTotals): PcapngTotals {
  const sums = after.interfacePackets.map(
    (packets, number) => packets + (before?.interfacePackets[number] ?? 0n),
  )
  return { ...after, interfacePackets: sums.length === 0 ? (before?.interfacePackets ?? []) : sums }
}
