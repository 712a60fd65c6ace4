/**
 * Every setting of the gateway: name, default, unit and check (those of devices are in
 * fleet/roster/device-settings.ts). config/gateway.example.yaml documents them.
 */
import { hostname } from 'node:os'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { loadConfig, secretSchema } from '../shared/base/config-file.ts'
import {
  listenSchema,
  loginsSchema,
  logLevelSchema,
  refuseNameTwice,
  resolveListen,
  timeZoneSchema,
  uploadsSchema,
} from '../shared/base/setting-schemas.ts'
import { TIME_SOURCES } from '../shared/query/time-source.ts'
import { type ProviderSettings, providersSchema } from './auth/provider-settings.ts'
import { exportTargetsSchema } from './export/target/export-targets.ts'
import { deviceSchema, discoverySchema, refuseUrlTwice } from './fleet/roster/device-settings.ts'
import { redisSchema } from './redis/redis-settings.ts'

/** A device serves four downloads at once; a smaller number leaves some of them to other clients. */
const STREAMS_PER_DEVICE_MAX = 4

/** A path spelled like device paths: no empty, dotted or escaped segment, no query. */
const READABLE_PATH = /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/
const READABLE_PATH_RULE = 'must be the path of a device, such as /api/v1/system/fans, without a query'

const wholeNumber = (min: number, max: number) => z.int().min(min).max(max)

const downloadsSchema = z
  .strictObject({
    waitS: wholeNumber(0, 55).default(25),
    waitMaxS: wholeNumber(0, 600).default(55),
    startTimeoutMs: wholeNumber(100, 600_000).default(15_000),
    idleTimeoutMs: wholeNumber(100, 3_600_000).default(30_000),
    retryPauseMs: wholeNumber(10, 60_000).default(2_000),
    clientIdleTimeoutMs: wholeNumber(100, 3_600_000).default(120_000),
    parkAfterMs: wholeNumber(100, 3_600_000).default(10_000),
    slowAfterMs: wholeNumber(100, 3_600_000).default(30_000),
    parkedIdleTimeoutMs: wholeNumber(100, 3_600_000).default(900_000),
    streamsPerDevice: wholeNumber(1, STREAMS_PER_DEVICE_MAX).default(STREAMS_PER_DEVICE_MAX),
    devicesMax: wholeNumber(1, 64).default(64),
    receiptsPerUserMax: wholeNumber(10, 1_000_000).default(5_000),
  })
  .refine((downloads) => downloads.waitS <= downloads.waitMaxS, {
    path: ['waitS'],
    message: 'must not be larger than downloads.waitMaxS',
  })

const GIB = 1_073_741_824

const exportsSchema = z
  .strictObject({
    enabled: z.boolean().default(true),
    targets: exportTargetsSchema.default([]),
    spool: z.string().optional(),
    devicesMax: wholeNumber(1, 100_000).default(1_000),
    perUserMax: wholeNumber(1, 100_000).default(100),
    spanBytes: wholeNumber(1_048_576, 64 * GIB).default(256 * 1_048_576),
    deviceRetryS: wholeNumber(0, 604_800).default(1_800),
    keepS: wholeNumber(60, 315_360_000).default(604_800),
    keepBytes: wholeNumber(1_048_576, Number.MAX_SAFE_INTEGER).optional(),
    worker: z
      .strictObject({
        listen: listenSchema(8082),
        fetches: wholeNumber(1, 1_000).default(64),
        writes: wholeNumber(1, 64).default(8),
      })
      .prefault({}),
  })
  .prefault({})

const auditSchema = z
  .strictObject({
    folder: z.string().optional(),
    name: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 letters, digits, _ and -')
      .default(machineName),
    required: z.boolean().default(true),
    sync: z.enum(['each', 'second']).default('second'),
    fileBytes: wholeNumber(65_536, 64 * GIB).default(268_435_456),
    keepDays: wholeNumber(1, 36_500).default(400),
    keepBytes: wholeNumber(1_048_576, 2 ** 50).default(64 * GIB),
    refusalBytesPerDay: wholeNumber(0, 2 ** 50).default(67_108_864),
    reserveBytes: wholeNumber(0, 2 ** 50).default(268_435_456),
  })
  .prefault({})

const tokensSchema = z
  .strictObject({
    keys: z.string().optional(),
    issuer: z.string().min(1).max(256).default('capfleet'),
    audience: z.string().min(1).max(256).default('capfleet'),
    lifetimeS: wholeNumber(60, 31_536_000).default(28_800),
    lifetimeMaxS: wholeNumber(60, 31_536_000).default(7_776_000),
  })
  .refine((tokens) => tokens.lifetimeS <= tokens.lifetimeMaxS, {
    path: ['lifetimeS'],
    message: 'must not be larger than auth.tokens.lifetimeMaxS',
  })
  .prefault({})

const sessionsSchema = z
  .strictObject({
    idleS: wholeNumber(60, 604_800).default(1_800),
    lifetimeS: wholeNumber(60, 604_800).default(43_200),
  })
  .prefault({})

const tracingSchema = z.strictObject({
  endpoint: z
    .url({ protocol: /^https?$/ })
    .refine((url) => new URL(url).username === '' && new URL(url).password === '', {
      message: 'must not contain a user; tracing.token is sent to the collector',
    }),
  token: secretSchema.optional(),
  ratio: z.number().min(0).max(1).default(1),
})

export const gatewayConfigSchema = z
  .strictObject({
    listen: listenSchema(8080),
    home: z.string().default('.capfleet/gateway'),
    redis: redisSchema,
    devices: z
      .array(deviceSchema)
      .default([])
      .superRefine(refuseNameTwice('devices'))
      .superRefine(refuseUrlTwice),
    deviceDiscovery: z.array(discoverySchema).default([]),
    auth: z.strictObject({
      users: z.string(),
      anonymousSystem: z.boolean().default(false),
      anonymousMetrics: z.boolean().default(false),
      logins: loginsSchema,
      tokens: tokensSchema,
      sessions: sessionsSchema,
      providers: providersSchema.superRefine(refuseNameTwice('auth.providers')),
    }),
    downloads: downloadsSchema.prefault({}),
    uploads: uploadsSchema(16),
    control: z
      .strictObject({
        connectTimeoutMs: wholeNumber(100, 60_000).default(5_000),
        timeoutMs: wholeNumber(100, 600_000).default(30_000),
        probeTimeoutMs: wholeNumber(100, 60_000).default(3_000),
        callsMax: wholeNumber(1, 100_000).default(512),
        callsPerUserMax: wholeNumber(1, 100_000).default(128),
        listBytesMax: wholeNumber(65_536, 1_073_741_824).default(67_108_864),
        listEntriesMax: wholeNumber(100, 10_000_000).default(200_000),
        largeAnswersMax: wholeNumber(1, 1_000).default(4),
        readablePaths: z.array(z.string().regex(READABLE_PATH, READABLE_PATH_RULE)).max(100).default([]),
      })
      .prefault({}),
    health: z
      .strictObject({
        intervalS: z.number().min(0.5).max(3_600).default(5),
        failuresMax: wholeNumber(1, 1_000_000).default(5),
      })
      .prefault({}),
    events: z
      .strictObject({
        clientsMax: wholeNumber(1, 10_000).default(256),
        callerClientsMax: wholeNumber(1, 10_000).default(16),
      })
      .prefault({}),
    exports: exportsSchema,
    audit: auditSchema,
    timeZone: timeZoneSchema,
    tsModeAliases: z.record(z.string().min(1).max(64), z.enum(TIME_SOURCES)).default({}),
    demoTour: z.boolean().default(false),
    console: z.strictObject({ dissector: z.boolean().default(true) }).prefault({}),
    tracing: tracingSchema.optional(),
    logLevel: logLevelSchema,
    drainS: wholeNumber(0, 86_400).default(30),
  })
  .refine(({ auth }) => hasOwnIssuers(auth), {
    path: ['auth', 'providers'],
    message: 'must each have a different issuer, and none of them may be auth.tokens.issuer',
  })
  .refine(({ devices, deviceDiscovery }) => devices.length + deviceDiscovery.length > 0, {
    path: ['devices'],
    message: 'must name a device, or deviceDiscovery must name a directory',
  })

export type GatewayConfig = z.infer<typeof gatewayConfigSchema>

/** Reads and checks the file; relative paths in it become absolute, resolved against its folder. */
export async function loadGatewayConfig(path: string): Promise<GatewayConfig> {
  const config = await loadConfig(path, gatewayConfigSchema)
  const folder = dirname(resolve(path))
  const { worker, spool } = config.exports
  const { audit } = config
  const { tokens, providers } = config.auth
  return {
    ...config,
    listen: resolveListen(config.listen, folder),
    home: resolve(folder, config.home),
    auth: {
      ...config.auth,
      users: resolve(folder, config.auth.users),
      tokens: { ...tokens, keys: tokens.keys === undefined ? undefined : resolve(folder, tokens.keys) },
      providers: providers.map((provider) => resolveProvider(provider, folder)),
    },
    audit: { ...audit, folder: audit.folder === undefined ? undefined : resolve(folder, audit.folder) },
    exports: {
      ...config.exports,
      spool: spool === undefined ? undefined : resolve(folder, spool),
      worker: { ...worker, listen: resolveListen(worker.listen, folder) },
    },
  }
}

/** The host name, restricted to characters allowed in a file name. */
function machineName(): string {
  return (
    hostname()
      .replaceAll(/[^A-Za-z0-9_-]/g, '-')
      .replace(/^[_-]+/, '')
      .slice(0, 64) || 'machine'
  )
}

interface Issuers {
  readonly tokens: { readonly issuer: string }
  readonly providers: readonly { readonly issuer: string }[]
}

function hasOwnIssuers({ tokens, providers }: Issuers): boolean {
  const issuers = [tokens.issuer, ...providers.map(({ issuer }) => issuer)]
  return new Set(issuers).size === issuers.length
}

/** With the paths of its key files absolute. */
function resolveProvider(provider: ProviderSettings, folder: string): ProviderSettings {
  const { jwks } = provider
  if ('file' in jwks) return { ...provider, jwks: { file: resolve(folder, jwks.file) } }
  return { ...provider, jwks: { ...jwks, ca: jwks.ca === undefined ? undefined : resolve(folder, jwks.ca) } }
}
