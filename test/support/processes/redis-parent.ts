/** A program that starts a private Redis in the folder of its argument, tells its pid, and waits. */
import type { Log } from '../../../src/base/log.ts'
import { startPrivateRedis } from '../../../src/redis/redis-server.ts'

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

const server = await startPrivateRedis(process.argv[2] ?? '', SILENT)
process.send?.(server.pid)
setInterval(() => undefined, 60_000)
