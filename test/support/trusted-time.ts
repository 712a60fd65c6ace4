import type { SharedTime } from '../../src/shared/base/shared-time.ts'

/** The time of this machine, for tests without the clock of Redis. */
export const TRUSTED_TIME: SharedTime = { nowMs: () => Date.now(), distrust: undefined }
