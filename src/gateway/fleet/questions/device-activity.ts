/** What a device reports about when it recorded what. A device is not trusted. */
import { deviceProtocol } from '../../device/device-failure.ts'
import { parseDeviceJson } from '../../device/device-json.ts'

/** More spans than a chart could show, or a properly working device would report. */
const SPANS_MAX = 20_000

/** As JSON, preceded by `device` and reduced to the members we know. Fails with device-protocol. */
export function formatActivity(device: string, text: string, bucketCount: number): string {
  const activity = (parseDeviceJson(device, text) ?? {}) as Record<string, unknown>
  const { packets, bytes, exact, gaps, dropped, trimmed, damaged } = activity
  if (!areCounts(packets, bucketCount) || !areCounts(bytes, bucketCount))
    throw deviceProtocol(device, `sent an activity without counts for ${bucketCount} parts of the range`)
  return JSON.stringify({
    device,
    packets,
    bytes,
    exact: exact === true,
    gaps: spansOf(device, gaps, isSpan, shownSpan),
    dropped: spansOf(device, dropped, isDrop, ({ packets: lost, ...span }) => ({
      ...shownSpan(span),
      packets: lost,
    })),
    trimmed: spansOf(device, trimmed, isSpan, shownSpan),
    damaged: spansOf(device, damaged ?? [], isSpan, shownSpan),
  })
}

interface Span {
  readonly fromNs: string
  readonly toNs: string
}

interface Drop extends Span {
  readonly packets: string
}

function areCounts(value: unknown, length: number): boolean {
  if (!Array.isArray(value) || value.length !== length) return false
  return value.every((count: unknown) => Number.isSafeInteger(count) && (count as number) >= 0)
}

function spansOf<One>(
  device: string,
  value: unknown,
  isOne: (one: unknown) => one is One,
  shown: (one: One) => object,
): readonly object[] {
  if (Array.isArray(value) && value.length <= SPANS_MAX && value.every(isOne)) return value.map(shown)
  throw deviceProtocol(device, 'sent an activity without spans of time')
}

function isSpan(value: unknown): value is Span {
  const { fromNs, toNs } = (value ?? {}) as Record<string, unknown>
  return isDecimal(fromNs) && isDecimal(toNs)
}

function isDrop(value: unknown): value is Drop {
  return isSpan(value) && isDecimal((value as unknown as Record<string, unknown>).packets)
}

function isDecimal(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,20}$/.test(value)
}

function shownSpan({ fromNs, toNs }: Span): Span {
  return { fromNs, toNs }
}
