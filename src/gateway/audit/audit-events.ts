/** The events that the audit records. */

/** Each event with its meaning; docs/operations/audit.md contains this table. */
export const AUDIT_EVENTS = {
  'audit.opened': 'A process starts to write: `program`, `version`, `pid`.',
  'audit.recovered':
    'The previous process was killed in the middle of a line: `cutBytes` at the end of `file` were removed.',
  'audit.lost':
    'Events before this line could not be written: `events` is their number, `since` the time of the first.',
  'audit.closed': 'The process shuts down in order. If this line is missing, the process was killed.',
  'download.begin':
    'A download is about to start: `devices`, `kind`, `capture`, `beginNs`, `endNs`, `localTimes`, `filters`, ' +
    '`forcedFilters` as understood; `path`, `query`; `resumed`, the download that it continues.',
  'download.end':
    'The download has ended: `outcome` as in its receipt, `packets`, `bytes`, `devices`, `sha256` if requested, `error`. ' +
    'Written before the client can see the end.',
  'seen.begin':
    'A search for addresses is about to start: `addresses`, at most the first 100, `addressCount`, and the SHA-256 of a longer list as `addressesHash`; ' +
    '`verify`, `path`, and the members of `download.begin` for range, filters and devices.',
  'seen.end':
    'The search has ended: `outcome` complete, incomplete (devices are `unanswered` or `partial`), failed or client-gone; `devices`, `found`, the number of ' +
    'addresses by device, `error`. Written before the client can see the end.',
  'count.begin':
    'A count of what a download would deliver is about to start: `path`, `countBytesMax`, and the members of `download.begin` for range, filters and devices.',
  'count.end':
    'The count has ended: `outcome` complete, incomplete (devices are `unanswered` or `partial`), failed or client-gone; `devices`, `error`. ' +
    'Written before the client can see the end.',
  'control.begin':
    'A call that changes, or may change, devices: `method`, `path`, `capture`, `parameters`, `query`, `devices`; `selection`, the ' +
    'header Capfleet-Device.',
  'control.end':
    'The call has ended: `status`, `devices`, `error`; for an upload `bytes` that were received, and `packets` that were stored.',
  'export.change.begin':
    'An export is about to be ordered, cancelled or filled: `method`, `path`, `parameters`, `query`.',
  'export.change.end':
    'The change has ended: `status`, `error`; for a new export its `location` and the members of `download.begin`.',
  'export.scheduled':
    'A worker is about to order an export for a `schedule`: `export` and the members of `download.begin`. Several workers may try; one succeeds.',
  'export.ended':
    'A worker ends an export: `export`, `outcome`, the members of `download.begin`, `packets`, `bytes`, `error`. Repeated if a worker was killed at this point.',
  'export.file.begin':
    'A file of an export is about to be sent: `export`, `file`, `first` and `last` byte, and the members of `download.begin`.',
  'export.file.end':
    'Sending has ended: `outcome` complete, failed or client-gone, `bytes`. Written before the client can see the end.',
  'queue.change.begin':
    'A request is about to be cancelled in the queue: `method`, `path`, `parameters`, `query`.',
  'queue.change.end':
    'The change has ended: `status`, `devices`, `owner`, the user of the request, `error`. The download records its own end.',
  'schedule.change.begin':
    'An export schedule is about to be created or removed: `method`, `path`, `parameters`, `query`.',
  'schedule.change.end': 'The change has ended: `status`, `devices`, `error`; `location` of a new schedule.',
  'session.change.begin':
    'A user has signed in on the page, or signs out: `method`, `path`, `parameters`, `query`.',
  'session.change.end': 'The change has ended: `status`, `error`; `location` of a new session.',
  'token.change.begin': 'A token is about to be created or revoked: `method`, `path`, `parameters`, `query`.',
  'token.change.end': 'The change has ended: `status`, `error`; `location` of a new token.',
  'ticket.change.begin': 'A ticket is about to be created: `method`, `path`, `parameters`, `query`.',
  'ticket.change.end':
    'The change has ended: `status`, `error`. The download with the ticket is recorded under the same user.',
  'login.failed':
    'A password, a token or a ticket was wrong: `name` as given, `path`. At most 20 per second are recorded; `others` is the ' +
    'number before this one that were not. Logins rejected by rate limiting are not recorded.',
  'access.refused':
    'A known user requested something without the rights for it: `method`, `path`, `query`, `error`, `needed`. At most 2 per second per user ' +
    "and 20 per second for all users are recorded; `others` is the number of this user's rejections before this one that were not.",
  'access.read':
    'A user is about to read the audit, the list of users or the manifest of an export: `path`, `parameters`, `query`.',
} as const

export type AuditEventName = keyof typeof AUDIT_EVENTS

/** Who did it, as far as known. */
export interface AuditActor {
  readonly user: string | null
  /** Client address in the form that caller-address.ts uses to tell callers apart. */
  readonly address: string | null
  /** password, token:ID, session:ID, ticket:ID or none. Never the secret itself. */
  readonly credential: string
  readonly requestId: string | null
}

/** The actor of events that the program itself causes. */
export const NOBODY: AuditActor = { user: null, address: null, credential: 'none', requestId: null }

export interface AuditEvent extends AuditActor {
  readonly event: AuditEventName
  /** Further members of the line; long texts and lists are truncated. */
  readonly details?: Readonly<Record<string, unknown>>
}
