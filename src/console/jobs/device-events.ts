/** Events of devices, as far as this page has heard of them: the timeline marks what the live view lists. */
import { openAnswer } from '../base/ask-gateway.ts'

export interface DeviceEvent {
  readonly device: string
  readonly id: string
  readonly kind: string
  readonly atNs: bigint
  readonly facts: string
}

/** The oldest ones go. */
const KEPT_MAX = 1_000

const events: DeviceEvent[] = []
let listeners: readonly (() => void)[] = []

export function allEvents(): readonly DeviceEvent[] {
  return events
}

export function keptEvents(device: string): readonly bigint[] {
  return events.filter((event) => event.device === device).map(({ atNs }) => atNs)
}

export function onDeviceEvent(listener: () => void): () => void {
  listeners = [...listeners, listener]
  return () => {
    listeners = listeners.filter((other) => other !== listener)
  }
}

/** Follows the events of a device, those that it keeps first, until the signal aborts or the connection breaks. */
export async function followEvents(device: string, signal: AbortSignal, onOpen: () => void): Promise<void> {
  const after = events.find((event) => event.device === device)?.id ?? '0'
  const path = `devices/${encodeURIComponent(device)}/api/v1/system/events?LastEventID=${after}`
  const answer = await openAnswer(path, { signal, headers: { accept: 'text/event-stream' } })
  onOpen()
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done) return
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) keepBlock(device, block)
    for (const listener of listeners) listener()
  }
}

function keepBlock(device: string, block: string): void {
  const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1] ?? ''
  const [id, data] = [field('id'), field('data')]
  if (data === '' || events.some((event) => event.device === device && event.id === id && id !== '')) return
  const { TS, Kind, ...facts } = JSON.parse(data) as Record<string, unknown>
  const atNs = BigInt(String(TS ?? '0'))
  events.unshift({ device, id, kind: field('event') || String(Kind), atNs, facts: factText(facts) })
  events.sort((a, b) => (a.atNs < b.atNs ? 1 : -1))
  events.length = Math.min(events.length, KEPT_MAX)
}

function factText(facts: Readonly<Record<string, unknown>>): string {
  return Object.entries(facts)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('  ')
}
