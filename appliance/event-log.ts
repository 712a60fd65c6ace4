/** What the recorder notes for its users: see /api/v1/system/events. */
export type EventKind =
  | 'capture-started'
  | 'capture-stopped'
  | 'capture-rolled'
  | 'capture-resumed'
  | 'capture-failed'
  | 'capture-recovered'
  | 'schedule-waiting'
  | 'packets-dropped'
  | 'disk-error'
  | 'disk-recovered'
  | 'recorder-started'

export interface EventLog {
  append(kind: EventKind, fields: Readonly<Record<string, string | number | boolean>>): void
}
