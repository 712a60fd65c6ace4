/**
 * The settings of an appliance and its recorder: one YAML file for both. Every key, default and
 * unit is in config/appliance.example.yaml.
 */
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { loadConfig } from '../src/shared/base/config-file.ts'
import {
  listenSchema,
  loginsSchema,
  logLevelSchema,
  resolveListen,
  timeZoneSchema,
  uploadsSchema,
} from '../src/shared/base/setting-schemas.ts'
import { LIVE_DEFAULTS } from '../src/shared/http/live-limit.ts'
import { TIME_SOURCES } from '../src/shared/query/time-source.ts'
import { COMPILE_DEFAULTS } from './compile/compile-queue.ts'
import { DISK_IDS } from './machine/disk-names.ts'
import { MOUNT_IDS } from './machine/free-space-sensor.ts'
import { LINK_IDS } from './machine/link-sensor.ts'
import { captureConfigSchema } from './settings/capture-config.ts'

/** Fixed by the API (section 8); the gateway's leases depend on it, so it is not a setting. */
export const DOWNLOAD_SLOTS = 4

/** Half of the 65536 s after which the seconds in a MAC address wrap around. */
const MAC48_REACH_MS = 32_768_000

const authSchema = z.strictObject({
  users: z.string().min(1),
  anonymousSystem: z.boolean().default(true),
  anonymousMetrics: z.boolean().default(false),
  logins: loginsSchema,
})

const downloadsSchema = z.strictObject({
  idleTimeoutMs: z.int().min(100).max(3_600_000).default(30_000),
  slowAfterMs: z.int().min(100).max(3_600_000).default(30_000),
  drainMs: z.int().min(0).max(86_400_000).default(30_000),
  mac48LimitMs: z.int().min(1).max(MAC48_REACH_MS).default(60_000),
})

const filtersSchema = z.strictObject({
  compilers: z.int().min(1).max(16).default(COMPILE_DEFAULTS.compilers),
  waitingMax: z.int().min(1).max(1_000).default(COMPILE_DEFAULTS.waitingMax),
  waitMs: z.int().min(10).max(60_000).default(COMPILE_DEFAULTS.waitMs),
  // The helpers exit after 5 s in any case.
  limitMs: z.int().min(100).max(5_000).default(COMPILE_DEFAULTS.limitMs),
})

const importsSchema = z.strictObject({
  segmentBytes: z
    .int()
    .min(1 << 20)
    .max(2 ** 40)
    .default(2 ** 30),
  maxRatio: z.int().min(10).max(100_000).default(200),
})

const telemetrySchema = z.strictObject({
  intervalMs: z.int().min(100).max(30_000).default(1_000),
})

const eventsSchema = z.strictObject({
  clientsMax: z.int().min(1).max(10_000).default(LIVE_DEFAULTS.clientsMax),
  callerClientsMax: z.int().min(1).max(10_000).default(LIVE_DEFAULTS.callerClientsMax),
})

const prioritySchema = z.strictObject({
  readers: z.enum(['low', 'normal']).default('low'),
})

const retentionSchema = z.strictObject({
  maxBytes: z.int().min(0).default(0),
  minFreeBytes: z
    .int()
    .min(0)
    .default(2 ** 30),
  maxAgeMs: z.int().min(0).default(0),
  onFull: z.enum(['roll', 'stop']).default('roll'),
  pinMs: z.int().min(0).max(600_000).default(30_000),
})
export type RetentionSettings = Readonly<z.infer<typeof retentionSchema>>

/** Optional settings with these names. */
function namesSchema<Id extends string>(ids: readonly Id[]) {
  const optional = z.string().min(1).optional()
  const shape = Object.fromEntries(ids.map((id) => [id, optional])) as Record<Id, typeof optional>
  return z.strictObject(shape)
}

const systemSchema = z.strictObject({
  disks: namesSchema(DISK_IDS).default({}),
  interfaces: namesSchema(LINK_IDS).default({}),
  mounts: namesSchema(MOUNT_IDS).default({}),
})

export const applianceConfigSchema = z.strictObject({
  deviceName: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
      'must be 1 to 63 letters, digits, dots, hyphens or underscores',
    )
    .default('appliance'),
  model: z.string().max(100).default('capfleet'),
  serial: z.string().max(100).default(''),
  listen: listenSchema(8081),
  store: z.string().min(1),
  timeZone: timeZoneSchema,
  auth: authSchema,
  downloads: downloadsSchema.prefault({}),
  filters: filtersSchema.prefault({}),
  tsModeAliases: z.record(z.string().min(1).max(64), z.enum(TIME_SOURCES)).default({}),
  imports: importsSchema.prefault({}),
  uploads: uploadsSchema(2),
  capture: captureConfigSchema.prefault({}),
  retention: retentionSchema.prefault({}),
  telemetry: telemetrySchema.prefault({}),
  events: eventsSchema.prefault({}),
  priority: prioritySchema.prefault({}),
  system: systemSchema.prefault({}),
  logLevel: logLevelSchema,
})

export type ApplianceConfig = z.infer<typeof applianceConfigSchema>

/** Reads the file; relative paths in it are resolved against its folder. Fails with bad-config. */
export async function loadApplianceConfig(path: string): Promise<ApplianceConfig> {
  const config = await loadConfig(path, applianceConfigSchema)
  const folder = dirname(resolve(path))
  return {
    ...config,
    listen: resolveListen(config.listen, folder),
    store: resolve(folder, config.store),
    auth: { ...config.auth, users: resolve(folder, config.auth.users) },
    system: { ...config.system, mounts: resolveAll(folder, config.system.mounts) },
  }
}

function resolveAll<Paths extends object>(folder: string, paths: Paths): Paths {
  const resolved = Object.entries(paths).map(([id, path]: [string, string]) => [id, resolve(folder, path)])
  return Object.fromEntries(resolved) as Paths
}
