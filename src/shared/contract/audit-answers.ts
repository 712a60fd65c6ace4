/** The answer of the audit, as a schema. */
import { z } from 'zod'
import { integer, named } from './schema-parts.ts'

const text = z.string()

const AUDIT_ENTRY = z
  .looseObject({
    chain: text.describe('The files that the line is in: of one process at a time'),
    seq: integer.describe('Of the line in its chain, from 1'),
    at: z.iso.datetime(),
    event: text,
    user: text.nullable(),
    address: text.nullable(),
    credential: text.describe('password, token:ID, session:ID, ticket:ID or none'),
    requestId: text.nullable(),
    prev: text.describe('The hash of the line before'),
    hash: text,
  })
  .meta({ id: 'AuditEntry', description: 'A line, with the members of its event' })

export const AUDIT_PAGE = named('AuditPage', {
  entries: z.array(AUDIT_ENTRY),
  next: text.nullable().describe('For After; null: there are no more lines'),
})
