/**
 * How much of a range a count reads: up to a limit of bytes, it ends at an instant, so that what was counted until then
 * is exact. No packets are read for this, except in the millisecond in which the range begins or ends.
 */
import { countPackets } from '../../native/addon.ts'
import type { StreamFiles } from '../../native/download-options.ts'
import { LOG_ENTRY_BYTES, readLogEntry } from '../../native/segment-entry.ts'

/** Half-open. */
interface TimeRange {
  readonly beginNs: bigint
  readonly endNs: bigint
}

export interface CountedRange {
  /** Bytes of all packets of the range, as records. */
  readonly rangeBytes: bigint
  /** The end of what is read: that of the range, or earlier. */
  readonly endNs: bigint
}

const NS_PER_MS = 1_000_000n
/** Parts of a range that are counted at once. */
const PARTS = 1_000n

/** Fails like countPackets. At least a millisecond is read, however many bytes it has. */
export async function countedRange(
  streams: readonly StreamFiles[],
  { beginNs, endNs }: TimeRange,
  { bytesMax, signal }: { readonly bytesMax: bigint; readonly signal: AbortSignal },
): Promise<CountedRange> {
  const count = async (boundariesNs: readonly bigint[]) =>
    await countPackets({ streams, boundariesNs, signal })
  const [whole] = await count([beginNs, endNs])
  const rangeBytes = whole?.bytes ?? 0n
  if (rangeBytes <= bytesMax) return { rangeBytes, endNs }
  let [leftBytes, boundariesNs] = [bytesMax, storedWithin(streams, { beginNs, endNs })]
  let [fromNs, toNs] = [beginNs, endNs]
  do {
    const counts = await count(boundariesNs)
    let crossed = 0
    for (; crossed < counts.length - 1; crossed++) {
      const bytes = counts[crossed]?.bytes ?? 0n
      if (bytes > leftBytes) break
      leftBytes -= bytes
    }
    fromNs = boundariesNs[crossed] ?? fromNs
    toNs = boundariesNs[crossed + 1] ?? toNs
    boundariesNs = partsOf({ beginNs: fromNs, endNs: toNs })
  } while (boundariesNs.length > 2)
  return { rangeBytes, endNs: fromNs > beginNs ? fromNs : toNs }
}

/** The range, divided where its first segment begins and its last one ends: a capture's range may be centuries long. */
function storedWithin(streams: readonly StreamFiles[], { beginNs, endNs }: TimeRange): readonly bigint[] {
  let [firstNs, lastNs] = [endNs, beginNs]
  for (const { segments } of streams) {
    const entries = Buffer.from(segments)
    for (let at = 0; at < entries.length; at += LOG_ENTRY_BYTES) {
      const { minNs, maxNs } = readLogEntry(entries, at)
      if (minNs < firstNs) firstNs = minNs
      if (maxNs > lastNs) lastNs = maxNs
    }
  }
  const inner = [firstNs - (firstNs % NS_PER_MS), lastNs - (lastNs % NS_PER_MS) + NS_PER_MS]
  return [
    beginNs,
    ...inner.filter((ns, index) => ns > beginNs && ns < endNs && ns !== inner[index - 1]),
    endNs,
  ]
}

/** Boundaries of at most PARTS + 1 parts, at whole milliseconds; only the ends if there is none in between. */
function partsOf({ beginNs, endNs }: TimeRange): readonly bigint[] {
  const partNs = (endNs - beginNs) / PARTS
  const stepNs = partNs - (partNs % NS_PER_MS) + NS_PER_MS
  const boundariesNs = [beginNs]
  for (let ns = beginNs - (beginNs % stepNs) + stepNs; ns < endNs; ns += stepNs) boundariesNs.push(ns)
  return [...boundariesNs, endNs]
}
