import { CapfleetError } from '../base/error.ts'

/** What a log line tells of a failed download. */
export function failureFields(error: unknown): Record<string, unknown> {
  if (!(error instanceof CapfleetError)) return { err: error }
  return { code: error.code, message: error.message, devices: error.details.members?.devices }
}
