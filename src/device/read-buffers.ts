import { BufferPool } from '../base/buffer-pool.ts'

const KEPT_BYTES_MAX = 64 * 1024 * 1024

/** For reading from devices, shared by all streams of the process: one buffer for each read. */
export const READ_BUFFERS = new BufferPool(KEPT_BYTES_MAX)
