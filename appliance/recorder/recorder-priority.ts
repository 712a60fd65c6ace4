import { constants, setPriority } from 'node:os'
import type { Log } from '../../src/shared/base/log.ts'

/**
 * Takes precedence over everything else on this machine, as far as this process is allowed to: threads started later
 * inherit it, and the kernel derives the disk priority from it.
 */
export function raisePriority(log: Log): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGH)
  } catch {
    log.info('recorder.normal-priority', { needs: 'CAP_SYS_NICE or a nice limit (LimitNICE=-20)' })
  }
}
