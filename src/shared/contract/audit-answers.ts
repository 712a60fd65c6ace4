/** Schema of the answer of the audit. */
import { z } from 'zod'
import { integer, named } from './schema-parts.ts'

const text = z.string()

const AUDIT_ENTRY = z
  .looseObject({
    chain: text.describe('The chain of files that contains the line; one process at a time writes a chain'),
    seq: integer.describe('Number of the line within its chain, starting at 1'),
    at: z.iso.datetime(),
    event: text,
    user: text.nullable(),
    address: text.nullable(),
    credential: text.describe('password, token:ID, session:ID, ticket:ID or none'),
    requestId: text.nullable(),
    prev: text.describe('The hash of the previous line'),
    hash: text,
  })
  .meta({ id: 'AuditEntry', description: 'A line of the audit, with the members of its event' })

export const AUDIT_PAGE = named('AuditPage', {
  entries: z.array(AUDIT_ENTRY),
  next: text.nullable().describe('Value of After for the next page; null: no more lines'),
})
