/** What is worth telling of a recorder. */
export const EVENT_KINDS = [
  'capture-started',
  'capture-stopped',
  'capture-rolled',
  'capture-resumed',
  'capture-failed',
  'capture-recovered',
  'packets-dropped',
  'disk-error',
  'disk-recovered',
  'clock-stepped',
  'segment-removed',
  'capture-aged-out',
  'store-full',
  'recorder-started',
] as const
export type EventKind = (typeof EVENT_KINDS)[number]

export interface EventLog {
  append(kind: EventKind, fields: Record<string, string | number | boolean>): void
}
