/**
 * Whether a system error means that no more bytes or files fit: the disk, a quota or a file size limit is exhausted.
 */
export function isFullDisk(error: unknown): boolean {
  return FULL_CODES.has((error as NodeJS.ErrnoException | undefined)?.code ?? '')
}

const FULL_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])
