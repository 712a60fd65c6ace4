/** A program that starts a private Redis in the folder of its argument, prints its pid, and waits. */
import { startPrivateRedis } from '../../../src/gateway/redis/redis-server.ts'
import type { Log } from '../../../src/shared/base/log.ts'

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

const server = await startPrivateRedis(process.argv[2] ?? '', SILENT)
process.send?.(server.pid)
setInterval(() => undefined, 60_000)
