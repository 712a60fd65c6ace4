/** The setting `capture` of an appliance: ports, segments, rolls, schedule. */
import { z } from 'zod'
import { zoneNameSchema } from '../../src/shared/base/setting-schemas.ts'
import { BASE_NAME, BASE_NAME_RULE } from '../../src/shared/query/capture-name-rule.ts'
import { CAPTURE_DAYS, overlappingRows } from './schedule-rows.ts'

const MIB = 2 ** 20
const DAY_S = 86_400
/** Ports of a device, cap0 to cap7: fixed by the API. */
export const CAPTURE_PORTS = 8

const THREADS_MAX = 16
/** The engine's minimum for each capture thread. */
const QUEUE_BYTES_PER_THREAD = MIB

const baseNameSchema = z.string().regex(BASE_NAME, `must be ${BASE_NAME_RULE}`)

const portSchema = z.strictObject({
  port: z
    .int()
    .min(0)
    .max(CAPTURE_PORTS - 1),
  // Names that the kernel accepts: up to 15 bytes, no slash, no space.
  interface: z.string().regex(/^[^\s/]{1,15}$/, 'must be the name of a network interface'),
  threads: z.int().min(1).max(THREADS_MAX).default(1),
  ringBytes: z
    .int()
    .min(4 * MIB)
    .max(2 ** 31)
    .multipleOf(MIB)
    .default(128 * MIB),
  snaplen: z.int().min(1).max(262_144).default(262_144),
  promiscuous: z.boolean().default(true),
  filter: z.string().max(16_384).default(''),
})
export type CapturePortConfig = z.infer<typeof portSchema>

const clockTime = /^([01]\d|2[0-3]):[0-5]\d:[0-5]\d$/
const startSchema = z.string().regex(clockTime, 'must be a time of day such as "08:30:00"')
const stopSchema = z
  .string()
  .refine((text) => text === '24:00:00' || clockTime.test(text), 'must be a time of day, up to "24:00:00"')

const rollSchema = z.strictObject({
  at: startSchema.optional(),
  everySeconds: z
    .int()
    .min(1)
    .max(366 * DAY_S)
    .optional(),
  everyBytes: z
    .int()
    .min(MIB)
    .max(2 ** 50)
    .optional(),
})
export type RollConfig = z.infer<typeof rollSchema>

const scheduleRowSchema = z.strictObject({
  name: baseNameSchema,
  start: startSchema,
  stop: stopSchema,
  days: z.array(z.enum(CAPTURE_DAYS)).min(1),
  zone: zoneNameSchema,
})

/** Each pair of rows is compared day by day over a year, so more rows would make the start slow. */
const SCHEDULE_ROWS_MAX = 32

const settingsSchema = z.strictObject({
  defaultName: baseNameSchema.default('capture'),
  ports: z
    .array(portSchema)
    .max(CAPTURE_PORTS)
    .superRefine((ports, ctx) => refuseTwice(ports, ctx))
    .default([]),
  segmentBytes: z
    .int()
    .min(MIB)
    .max(2 ** 40)
    .default(2 ** 30),
  syncIntervalMs: z.int().min(50).max(60_000).default(1_000),
  queueBytes: z
    .int()
    .min(QUEUE_BYTES_PER_THREAD)
    .max(2 ** 40)
    .default(256 * MIB),
  roll: rollSchema.prefault({}),
  schedule: z
    .array(scheduleRowSchema)
    .max(SCHEDULE_ROWS_MAX)
    .superRefine((rows, ctx) => {
      const pair = overlappingRows(rows, Date.now())
      if (pair === undefined) return
      const [one, other] = pair.map((row) => rows.indexOf(row))
      ctx.addIssue({
        code: 'custom',
        path: [other ?? 0],
        message: `runs at the same time as row ${one} (${pair[0].name}) within the next year; a device records one capture at a time`,
      })
    })
    .default([]),
})

export const captureConfigSchema = settingsSchema.superRefine(({ ports, queueBytes }, ctx) => {
  const threads = ports.reduce((sum, port) => sum + port.threads, 0)
  if (queueBytes >= threads * QUEUE_BYTES_PER_THREAD) return
  const message = `must be at least 1 MiB for each of the ${threads} threads of the ports`
  ctx.addIssue({ code: 'custom', path: ['queueBytes'], message })
})
export type CaptureConfig = z.infer<typeof captureConfigSchema>

function refuseTwice(ports: readonly CapturePortConfig[], ctx: z.RefinementCtx): void {
  for (const member of ['port', 'interface'] as const) {
    const values = ports.map((port) => port[member])
    const twice = values.findIndex((value, index) => values.indexOf(value) !== index)
    if (twice >= 0) {
      ctx.addIssue({
        code: 'custom',
        path: [twice, member],
        message: `${values[twice]} is already used by another port`,
      })
    }
  }
}
