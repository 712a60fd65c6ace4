/** The body of an error, and the errors that any request may get. */
import { z } from 'zod'
import { ERROR_KINDS, type ErrorCode } from '../base/error.ts'
import type { Endpoint } from './endpoint.ts'

/**
 * RFC 9457, as written by src/shared/http/http-app.ts. Status and Str of the old paths are not described: generated
 * clients cannot have Status in addition to status, nor Str in addition to further members.
 */
export const PROBLEM = z
  .looseObject({
    type: z.string().describe('urn:capfleet:error:<code>'),
    title: z.string(),
    status: z.number().meta({ type: 'integer' }),
    detail: z.string().describe('What is wrong, and how to fix it'),
    code: z.enum(Object.keys(ERROR_KINDS) as ErrorCode[]),
    requestId: z.string(),
    param: z.string().optional().describe('The parameter at fault'),
    position: z
      .number()
      .meta({ type: 'integer' })
      .optional()
      .describe('Position of the error in the value of the parameter, in characters from 0'),
  })
  .meta({
    id: 'Problem',
    description:
      'On the old paths also with Status, which is false, and Str, which is the same as detail, because existing scripts expect them.',
  })

/** All codes that a request to the endpoint may be answered with. */
export function errorsOf({ scope, filtered, changes, parameters, errors }: Endpoint): readonly ErrorCode[] {
  const codes = new Set<ErrorCode>([
    'too-many-requests',
    'connections-exhausted',
    'internal-error',
    ...errors,
  ])
  if (parameters !== undefined) codes.add('bad-parameter')
  if (scope !== 'anyone') for (const code of LOGIN_ERRORS) codes.add(code)
  if (changes !== undefined) codes.add('cross-site')
  if (filtered === 'refused') codes.add('out-of-bounds')
  return [...codes]
}

const LOGIN_ERRORS = ['unauthenticated', 'insufficient-scope', 'too-many-logins'] as const
