/** What the audit tells of. */

/** Each event with what it means; REFERENCE.md has this table. */
export const AUDIT_EVENTS = {
  'audit.opened': 'A process begins to write: `program`, `version`, `pid`.',
  'audit.recovered':
    'The process before was killed in the middle of a line: `cutBytes` of `file` were cut off.',
  'audit.lost': 'Events that could not be written in between: `events`, `since`.',
  'audit.closed': 'The process ends in good order. Without it, it was killed.',
  'download.begin':
    'A download is going to be opened: `path`, `query` as given, `devices`, `plan` as understood.',
  'download.end':
    'A download has ended: `outcome` as in its receipt, `packets`, `bytes`, `sha256` if asked for, `error`. ' +
    'Written before the client can see the end.',
  'export.ordered': 'An export: `export`, `query`, `devices`.',
  'export.cancelled': 'An export is cancelled, or its files are removed: `export`.',
  'export.filled': 'What is missing in an export is to be fetched: `export`.',
  'export.end':
    'A worker has ended an export: `export`, `outcome`, `packets`, `bytes`, `error`. Twice, where a worker died meanwhile.',
  'export-file.begin': 'A file of an export is sent: `export`, `file`, `range`.',
  'export-file.end': 'No more of the file is sent: `bytes` were, `outcome`.',
  'schedule.ordered': 'A schedule of exports: `schedule`, `query`.',
  'schedule.removed': 'A schedule is ended: `schedule`.',
  'control.begin': 'A call that changes devices, or may: `method`, `path`, `query`, `devices`.',
  'control.end': 'It has ended: `status`.',
  'login.failed':
    'A password was wrong: `name` as given. Logins that are refused without a look are not told of.',
  'access.refused': 'A known user asked for what they may not: `method`, `path`, `needed`.',
} as const

export type AuditEventName = keyof typeof AUDIT_EVENTS

/** Who did it, as far as that is known. */
export interface AuditActor {
  readonly user: string | null
  /** addressOf() their connection. */
  readonly address: string | null
  /** password, token:ID, ticket:ID or none. Never what proves it. */
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
