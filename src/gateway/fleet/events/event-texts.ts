/** Events of the fleet as the texts that clients get, and events reported by devices in this form. */
import { formatEvent } from '../../../shared/http/server-sent-events.ts'
import { nestsTooDeep } from '../../device/device-json.ts'
import { plainText } from '../../device/device-refusal.ts'
import type { EventBlock } from './event-blocks.ts'

export interface Happened {
  readonly source: 'device' | 'gateway'
  readonly kind: string
  readonly atNs: string
  /** The device's own number. */
  readonly number: string | null
  /** JSON in one line. */
  readonly told: string
}

const KIND_LENGTH = 64
const NUMBER_LENGTH = 32

/** Without an id: a client whose connection breaks after it gets the text again. */
export function formatGap(gap: { readonly device: string | null; readonly missed: number | null }): string {
  return formatEvent('gap', JSON.stringify(gap))
}

export function formatHappened(id: string, device: string, { told, ...facts }: Happened): string {
  const head = JSON.stringify({ device, ...facts }).slice(0, -1)
  // Letter by letter: to read and write it would change integers beyond 2^53.
  return formatEvent('happened', `${head},"told":${told}}`, id)
}

/** An event observed by the gateway itself. */
export function seenByGateway(kind: string, facts: object): Happened {
  return { source: 'gateway', kind, atNs: nowNs(), number: null, told: JSON.stringify(facts) }
}

/** An event reported by a device. If it has no time, ours is used. */
export function toldByDevice({ id, name, data }: EventBlock): Happened {
  const told = oneLine(data)
  const { TS, Kind } = membersOf(told)
  return {
    source: 'device',
    kind: plainText(name === '' ? Kind : name, KIND_LENGTH) ?? 'unknown',
    atNs: typeof TS === 'string' && /^\d{1,20}$/.test(TS) ? TS : nowNs(),
    number: plainText(id, NUMBER_LENGTH) ?? null,
    told,
  }
}

/** The device's JSON unchanged; anything that is not JSON, or may do harm, as a string. */
function oneLine(data: string): string {
  // In JSON, newlines occur only between tokens.
  const line = data.replaceAll(/[\r\n]/g, ' ')
  try {
    if (nestsTooDeep(line)) throw new SyntaxError('it is nested too deep')
    JSON.parse(line)
    return line
  } catch {
    return JSON.stringify(line)
  }
}

function membersOf(json: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(json)
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function nowNs(): string {
  return `${Date.now()}000000`
}
