/** Schedules over a real Redis, run without a worker: the test sets the clock. */
import { join } from 'node:path'
import { Device } from '../../../src/gateway/device/device.ts'
import { ExportJobs } from '../../../src/gateway/export/export-jobs.ts'
import { ExportStore } from '../../../src/gateway/export/export-store.ts'
import { ScheduleStore } from '../../../src/gateway/export/schedule-store.ts'
import { openTargets } from '../../../src/gateway/export/target/export-targets.ts'
import { Fleet } from '../../../src/gateway/fleet/fleet.ts'
import type { Log } from '../../../src/shared/base/log.ts'
import { Secret } from '../../../src/shared/base/secret.ts'
import type { SchedulingParts } from '../../../src/worker/run/run-schedule.ts'
import { UNAUDITED } from '../access/temp-audit.ts'
import { TempRedis } from '../processes/temp-redis.ts'
import { USER_PASSWORD } from '../suite-secrets.ts'
import { writeUsers } from '../suite-users.ts'
import { tempFolder } from '../temp-folder.ts'
import { TRUSTED_TIME } from '../trusted-time.ts'

export interface ScheduleStand extends AsyncDisposable {
  readonly redis: TempRedis
  readonly users: string
  readonly keyPrefix: string
  /** What another worker would have: its own connections. */
  open(): SchedulingParts
  /** Sets the devices of all workers. */
  setDevices(...names: readonly string[]): void
}

export async function scheduleStand(perUserMax = 10_000): Promise<ScheduleStand> {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder())
  const users = join(folder.path, 'users.yaml')
  const people = [
    { name: 'ann', role: 'user' },
    { name: 'bob', role: 'full' },
  ] as const
  await writeUsers(users, people, USER_PASSWORD)
  const redis = parts.use(await TempRedis.create())
  const nothing = () => undefined
  const log: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing }
  const fleet = parts.use(
    new Fleet({
      connectTimeoutMs: 60_000,
      idleTimeoutMs: 60_000,
      probeTimeoutMs: 60_000,
      listTimeoutMs: 60_000,
      probeIntervalMs: 3_600_000,
      failuresMax: 1_000_000,
      lists: { bytesMax: 1_000_000, entriesMax: 1_000 },
      largeAnswersMax: 4,
      log,
    }),
  )
  const target = { name: 'local', type: 'directory' as const, path: folder.path }
  const targets = await openTargets([target], join(folder.path, 'gateway.yaml'))
  const keyPrefix = 'stand'
  const ordering = { users, timeZone: 'UTC', tsModeAliases: {}, perUserMax, devicesMax: 64 }
  const options = { redis: { url: redis.url }, keyPrefix, log }
  const setDevices = (...names: readonly string[]) => {
    // Nothing listens there: an export is created without a request to a device.
    fleet.replace(
      names.map(
        (name) => new Device({ name, url: 'http://127.0.0.1:9', user: 'u', password: new Secret('p') }),
      ),
    )
  }
  setDevices('d0')
  const owner = parts.move()
  return {
    redis,
    users,
    keyPrefix,
    open: () => ({
      schedules: owner.use(new ScheduleStore(options)),
      store: owner.use(new ExportStore(options)),
      jobs: owner.use(new ExportJobs(options)),
      clock: TRUSTED_TIME,
      fleet,
      targets,
      ordering,
      audit: UNAUDITED,
      log,
    }),
    setDevices,
    [Symbol.asyncDispose]: () => owner.disposeAsync(),
  }
}
