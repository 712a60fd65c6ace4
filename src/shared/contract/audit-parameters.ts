/** Selects the audit lines to list. */

import { numberType, patternType, TEXT } from '../query/parameter-types.ts'
import type { ParameterRows } from '../query/query-parameters.ts'
import { listTimeRows } from '../query/time/list-times.ts'

const LINES_MAX = 1_000

/** Where a page ended: a time, and a line of a chain. */
export const AUDIT_PLACE = /^(?<atMs>\d{1,15})\.(?<seq>\d{1,15})\.(?<chain>[A-Za-z0-9][A-Za-z0-9._-]{0,99})$/

export const AUDIT_PARAMETERS = {
  limit: {
    name: 'Limit',
    says: 'Maximum number of lines to list.',
    type: numberType(1, LINES_MAX, 'lines'),
    default: 100,
  },
  after: {
    name: 'After',
    says: 'Continues after a page: its `next`.',
    type: patternType(AUDIT_PLACE, 'must be the next of a page'),
    defaultSays: 'the newest lines',
  },
  user: { name: 'User', says: 'Lists only lines of this user.', type: TEXT, defaultSays: 'all' },
  event: {
    name: 'Event',
    says: 'Lists only these events: download.end, or download for all events that begin with it.',
    type: patternType(/^[a-z]+(\.[a-z]+)*$/, 'must be an event such as download.end, or its first words'),
    defaultSays: 'all',
  },
  device: {
    name: 'Device',
    says: 'Lists only lines that name this device.',
    type: TEXT,
    defaultSays: 'all',
  },
  ...listTimeRows({
    from: 'Lists only lines at or after this time.',
    to: 'Lists only lines before this time.',
  }),
} as const satisfies ParameterRows
