/** Errors that say nothing about the file that was being read. */
const TEMPORARY: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN', 'EINTR'])

/**
 * Whether the machine merely lacked something at this moment. After any other error, what was being read counts as
 * damaged, because it may never be readable again.
 */
export function isTemporary(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return TEMPORARY.has((error as NodeJS.ErrnoException).code) || isTemporary(error.cause)
}
