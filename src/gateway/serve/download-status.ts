import type { BodyResult } from '../fetch/body/body.ts'
import type { DownloadStatus } from './receipt.ts'

type UncutStatus = Exclude<DownloadStatus, 'streaming' | 'failed' | 'client-gone'>

/** The status of a download whose body was not cut. */
export function statusOf({ perDevice, isTruncated, corruptBlocks = 0n }: BodyResult): UncutStatus {
  if (corruptBlocks > 0n) return 'partial'
  if (perDevice.some(({ missing }) => missing !== undefined)) return 'partial'
  if (perDevice.some(({ status }) => status === 'unverified')) return 'unverified'
  return isTruncated === true ? 'truncated' : 'complete'
}
