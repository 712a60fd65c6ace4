/** What the audit tells of. */

/** Each event with what it means; REFERENCE.md has this table. */
export const AUDIT_EVENTS = {
  'audit.opened': 'A process begins to write: `program`, `version`, `pid`.',
  'audit.recovered':
    'The process before was killed in the middle of a line: `cutBytes` at the end of `file` were cut off.',
  'audit.lost': 'Events could not be written before this line: `events`, from `since` on.',
  'audit.closed': 'The process ends in good order. Without it, it was killed.',
  'download.begin':
    'A download is going to be opened: `devices`, `kind`, `capture`, `beginNs`, `endNs`, `localTimes`, `filters`, ' +
    '`forcedFilters` as they were understood; `path`, `query`; `resumed`, the one it continues.',
  'download.end':
    'It has ended: `outcome` as in its receipt, `packets`, `bytes`, `devices`, `sha256` if asked for, `error`. ' +
    'Written before the client can see the end.',
  'control.begin':
    'A call that changes devices, or may: `method`, `path`, `capture`, `parameters`, `query`, `devices`; `selection`, the ' +
    'header Capfleet-Device.',
  'control.end': 'It has ended: `status`, `devices`, `error`.',
  'export.change.begin':
    'An export is going to be ordered, cancelled or filled: `method`, `path`, `parameters`, `query`.',
  'export.change.end':
    'It is: `status`, `error`; `location` of a new one, and what it takes, as `download.begin` has it.',
  'export.scheduled':
    'A worker is going to order an export for a `schedule`: `export`, and what it takes. Several workers may try, and one does.',
  'export.ended':
    'A worker ends an export: `export`, `outcome`, what it took, `packets`, `bytes`, `error`. Again where one was killed then.',
  'export.file.begin':
    'A file of an export is going to be sent: `export`, `file`, `first` and `last` byte, and what the export took.',
  'export.file.end':
    'No more of it is sent: `outcome` complete, failed or client-gone, `bytes`. Written before the client can see the end.',
  'schedule.change.begin':
    'A schedule of exports is going to be ordered or removed: `method`, `path`, `parameters`, `query`.',
  'schedule.change.end': 'It is: `status`, `devices`, `error`; `location` of a new one.',
  'session.change.begin':
    'Somebody has signed in at the page, or signs out: `method`, `path`, `parameters`, `query`.',
  'session.change.end': 'It is: `status`, `error`; `location` of a new session.',
  'token.change.begin': 'A token is going to be minted or revoked: `method`, `path`, `parameters`, `query`.',
  'token.change.end': 'It is: `status`, `error`; `location` of a new one.',
  'ticket.change.begin': 'A ticket is going to be made: `method`, `path`, `parameters`, `query`.',
  'ticket.change.end': 'It is: `status`, `error`. Its download has its user.',
  'login.failed':
    'A password, a token or a ticket was wrong: `name` as given, `path`. At most 20 per second are recorded; `others` is the ' +
    'number before this one that were not. Logins rejected by rate limiting are not recorded.',
  'access.refused':
    'A known user asked for what they may not: `method`, `path`, `query`, `error`, `needed`. At most 2 per second of a user ' +
    'and 20 per second of all users are recorded; `others` is the number of this user before this one that were not.',
  'access.read':
    'A user is going to read the audit, the list of users or the manifest of an export: `path`, `parameters`, `query`.',
} as const

export type AuditEventName = keyof typeof AUDIT_EVENTS

/** Who did it, as far as that is known. */
export interface AuditActor {
  readonly user: string | null
  /** As caller-address.ts tells callers apart. */
  readonly address: string | null
  /** password, token:ID, session:ID, ticket:ID or none. Never what proves it. */
  readonly credential: string
  readonly requestId: string | null
}

/** The program itself. */
export const NOBODY: AuditActor = { user: null, address: null, credential: 'none', requestId: null }

export interface AuditEvent extends AuditActor {
  readonly event: AuditEventName
  /** Further members of the line; long texts and lists are cut. */
  readonly details?: Readonly<Record<string, unknown>>
}
