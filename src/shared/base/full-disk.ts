/** Whether an error of the system says that no more bytes or files fit: the disk, a quota or a file is full. */
export function isFullDisk(error: unknown): boolean {
  return FULL_CODES.has((error as NodeJS.ErrnoException | undefined)?.code ?? '')
}

const FULL_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])
