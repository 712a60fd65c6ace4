/** Which lines of the audit are listed. */
import { numberType, patternType, TEXT } from './parameter-types.ts'
import type { ParameterRows } from './query-parameters.ts'

const LINES_MAX = 1_000

/** Where a page ended: a time, and a line of a chain. */
export const AUDIT_PLACE = /^(?<atMs>\d{1,15})\.(?<seq>\d{1,15})\.(?<chain>[A-Za-z0-9][A-Za-z0-9._-]{0,99})$/

export const AUDIT_PARAMETERS = {
  limit: {
    name: 'Limit',
    says: 'How many lines to list at most.',
    type: numberType(1, LINES_MAX, 'lines'),
    default: 100,
  },
  after: {
    name: 'After',
    says: 'Goes on behind a page: its `next`.',
    type: patternType(AUDIT_PLACE, 'must be the next of a page'),
    defaultSays: 'the newest lines',
  },
  user: { name: 'User', says: 'Lists what this user did alone.', type: TEXT, defaultSays: 'all' },
  event: {
    name: 'Event',
    says: 'Lists these events alone: download.end, or download for all whose name begins so.',
    type: patternType(/^[a-z]+(\.[a-z]+)*$/, 'must be an event such as download.end, or its first words'),
    defaultSays: 'all',
  },
  device: {
    name: 'Device',
    says: 'Lists what names this device alone.',
    type: TEXT,
    defaultSays: 'all',
  },
  from: {
    name: 'From',
    says: 'The earliest time of a line, as TSBegin has it: -1h, RFC 3339.',
    type: TEXT,
    defaultSays: 'no limit',
    example: '-1h',
  },
  to: {
    name: 'To',
    says: 'The time before which a line is, as TSEnd has it.',
    type: TEXT,
    defaultSays: 'no limit',
  },
} as const satisfies ParameterRows
