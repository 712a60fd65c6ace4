/**
 * The settings of an appliance and its recorder: one YAML file for both. Every key, default and
 * unit is in config/appliance.example.yaml.
 */
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { loadConfig } from '../src/base/config-file.ts'

/** Stated by the API (section 8); the gateway's leases rely on it, so that it is no setting. */
export const DOWNLOAD_SLOTS = 4

const listenSchema = z.strictObject({
  host: z.string().default('127.0.0.1'),
  port: z.int().min(0).max(65_535).default(8081),
})

const authSchema = z.strictObject({
  users: z.string().min(1),
  anonymousSystem: z.boolean().default(true),
})

const downloadsSchema = z.strictObject({
  idleTimeoutMs: z.int().min(100).max(3_600_000).default(30_000),
  drainMs: z.int().min(0).max(86_400_000).default(30_000),
})

const importsSchema = z.strictObject({
  segmentBytes: z
    .int()
    .min(1 << 20)
    .max(2 ** 40)
    .default(2 ** 30),
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
  listen: listenSchema.prefault({}),
  store: z.string().min(1),
  timeZone: z
    .string()
    .refine(isTimeZone, 'must be an IANA time zone such as Europe/Berlin')
    .default(() => Intl.DateTimeFormat().resolvedOptions().timeZone),
  auth: authSchema,
  downloads: downloadsSchema.prefault({}),
  imports: importsSchema.prefault({}),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
})

export type ApplianceConfig = z.infer<typeof applianceConfigSchema>

/** Reads the file; the paths in it, relative to its folder, come back absolute. Fails with bad-config. */
export async function loadApplianceConfig(path: string): Promise<ApplianceConfig> {
  const config = await loadConfig(path, applianceConfigSchema)
  const folder = dirname(resolve(path))
  return {
    ...config,
    store: resolve(folder, config.store),
    auth: { ...config.auth, users: resolve(folder, config.auth.users) },
  }
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
