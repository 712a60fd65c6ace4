/** What the audit tells of. */

/** Each event with what it means; REFERENCE.md has this table. */
export const AUDIT_EVENTS = {
  'audit.opened': 'A process begins to write: `program`, `version`, `pid`.',
  'audit.recovered':
    'The process before was killed in the middle of a line: `cutBytes` at the end of `file` were cut off.',
  'audit.lost': 'Events could not be written before this line: `events`, from `since` on.',
  'audit.closed': 'The process ends in good order. Without it, it was killed.',
  'download.begin':
    'A download is going to be opened: `path`, `query`, `devices`; `resumed`, the one it continues.',
  'download.end':
    'It has ended: `outcome` as in its receipt, `packets`, `bytes`, `devices`, `sha256` if asked for, `error`. ' +
    'Written before the client can see the end.',
  'control.begin':
    'A call that changes devices, or may: `method`, `path`, `query`, `devices` or, of several, `selection`.',
  'control.end': 'It has ended: `status`, `devices`, `error`.',
  'export.change.begin': 'An export is going to be ordered, cancelled or filled: `method`, `path`, `query`.',
  'export.change.end': 'It is: `status`, `devices`, `error`; `location` of a new one.',
  'export.scheduled':
    'A worker is going to order an export for a `schedule`: `export`, `devices`. Several workers may try, and one does.',
  'export.ended':
    'A worker ends an export: `export`, `outcome`, `devices`, `packets`, `bytes`, `error`. Again where one was killed then.',
  'export.file.begin':
    'A file of an export is going to be sent: `export`, `file`, `first` and `last` byte, `devices`.',
  'export.file.end':
    'No more of it is sent: `outcome` complete, failed or client-gone, `bytes`. Written before the client can see the end.',
  'schedule.change.begin':
    'A schedule of exports is going to be ordered or removed: `method`, `path`, `query`.',
  'schedule.change.end': 'It is: `status`, `devices`, `error`; `location` of a new one.',
  'session.change.begin': 'Somebody has signed in at the page, or signs out: `method`, `path`, `query`.',
  'session.change.end': 'It is: `status`, `error`; `location` of a new session.',
  'token.change.begin': 'A token is going to be minted or revoked: `method`, `path`, `query`.',
  'token.change.end': 'It is: `status`, `error`; `location` of a new one.',
  'ticket.change.begin': 'A ticket is going to be made: `method`, `path`, `query`.',
  'ticket.change.end': 'It is: `status`, `error`. Its download has its user.',
  'login.failed':
    'A password, a token or a ticket was wrong: `name` as given, `path`. Of more than 20 in a second the others are counted: ' +
    '`others` before this one. Logins that are refused without a look are not told of.',
  'access.refused': 'A known user asked for what they may not: `method`, `path`, `query`, `error`, `needed`.',
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
