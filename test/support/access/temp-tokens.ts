/** Token verification as in a gateway, but without one: a Redis, users, and a folder of keys. */
import { join } from 'node:path'
import { gatewayConfigSchema } from '../../../src/gateway/gateway-config.ts'
import { type OpenedTokens, openTokens } from '../../../src/gateway/open-tokens.ts'
import type { UsersFile } from '../../../src/shared/auth/users-file.ts'
import type { Log } from '../../../src/shared/base/log.ts'
import { Metrics } from '../../../src/shared/base/metrics.ts'
import type { SharedTime } from '../../../src/shared/base/shared-time.ts'
import { TempRedis } from '../processes/temp-redis.ts'
import { USER_PASSWORD } from '../suite-secrets.ts'
import { writeUsers } from '../suite-users.ts'
import { tempFolder } from '../temp-folder.ts'
import { TRUSTED_TIME } from '../trusted-time.ts'
import { loadUsers } from './loaded-users.ts'

export interface TempTokens extends OpenedTokens, AsyncDisposable {
  readonly users: UsersFile
  readonly usersPath: string
  readonly metrics: Metrics
  /** Names of the events, with their files. */
  readonly logged: readonly string[]
}

/** `fill` creates keys in the folder. The users are "ann" (full) and "admin". */
export async function openTempTokens(
  fill: (folder: string) => Promise<void>,
  auth: object = {},
  clock: SharedTime = TRUSTED_TIME,
): Promise<TempTokens> {
  await using opening = new AsyncDisposableStack()
  const redis = opening.use(await TempRedis.create())
  const folder = opening.use(await tempFolder()).path
  await fill(folder)
  const usersFolder = opening.use(await tempFolder()).path
  const usersPath = join(usersFolder, 'users.yaml')
  const known = [
    { name: 'ann', role: 'full' },
    { name: 'admin', role: 'admin' },
  ] as const
  await writeUsers(usersPath, known, USER_PASSWORD)
  const users = await loadUsers(usersPath)
  const logged: string[] = []
  const record = (event: string, fields?: Readonly<Record<string, unknown>>) =>
    void logged.push(`${event} ${fields?.file ?? ''}`.trim())
  const log: Log = { debug: record, info: record, warn: record, error: record }
  const metrics = new Metrics()
  const config = gatewayConfigSchema.parse({
    devices: [{ name: 'a', url: 'http://127.0.0.1', user: 'u', password: { env: 'X' } }],
    auth: { users: usersPath, anonymousMetrics: true, tokens: { keys: folder }, ...auth },
  })
  const opened = await openTokens(config, { users, redis: { url: redis.url }, clock, metrics, log }, opening)
  const owned = opening.move()
  return { ...opened, users, usersPath, metrics, logged, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
