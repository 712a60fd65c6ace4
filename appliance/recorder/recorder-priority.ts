import { constants, setPriority } from 'node:os'
import type { Log } from '../../src/shared/base/log.ts'

/**
 * Before everything else on this machine, as far as this process may: threads that it starts later
 * inherit it, and the kernel derives the priority at the disk from it.
 */
export function raisePriority(log: Log): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGH)
  } catch {
    log.info('recorder.normal-priority', { needs: 'CAP_SYS_NICE or a nice limit (LimitNICE=-20)' })
  }
}
