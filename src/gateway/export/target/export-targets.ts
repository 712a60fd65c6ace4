/** The setting exports.targets: the places where files of exports may be kept. */
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { readSecret, secretSchema } from '../../../shared/base/config-file.ts'
import { refuseNameTwice } from '../../../shared/base/setting-schemas.ts'
import { DirectoryTarget } from './directory-target.ts'
import type { ExportTarget } from './export-target.ts'

const nameSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 letters, digits, dots, hyphens or underscores')

const directorySchema = z.strictObject({
  name: nameSchema,
  type: z.literal('directory'),
  path: z.string().min(1),
})

const s3Schema = z
  .strictObject({
    name: nameSchema,
    type: z.literal('s3'),
    bucket: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/, 'must be the name of a bucket'),
    prefix: z
      .string()
      .regex(/^([A-Za-z0-9!_.*'()-]+\/)*$/, 'must be folders, each followed by a slash, such as captures/')
      .default(''),
    endpoint: z
      .string()
      .refine(isEndpoint, 'must be http:// or https:// with host and port, without user or path')
      .optional(),
    region: z.string().regex(/^[a-z0-9-]{1,64}$/, 'must be a region such as eu-central-1'),
    accessKeyId: z.string().min(1).optional(),
    secretAccessKey: secretSchema.optional(),
    requestChecksums: z.boolean().default(true),
  })
  .refine(
    ({ accessKeyId, secretAccessKey }) => (accessKeyId === undefined) === (secretAccessKey === undefined),
    { path: ['secretAccessKey'], message: 'belongs to accessKeyId: give both or neither' },
  )

export const exportTargetsSchema = z
  .array(z.discriminatedUnion('type', [directorySchema, s3Schema]))
  .superRefine(refuseNameTwice('exports.targets'))

export type ExportTargetSettings = z.infer<typeof exportTargetsSchema>[number]

/**
 * Targets by name, in the order of the setting. Paths and files of secrets are relative to the folder of `configPath`.
 */
export async function openTargets(
  settings: readonly ExportTargetSettings[],
  configPath: string,
): Promise<ReadonlyMap<string, ExportTarget>> {
  const targets = new Map<string, ExportTarget>()
  for (const [index, target] of settings.entries())
    targets.set(target.name, await openTarget(target, configPath, `exports.targets[${index}]`))
  return targets
}

async function openTarget(
  target: ExportTargetSettings,
  configPath: string,
  setting: string,
): Promise<ExportTarget> {
  if (target.type === 'directory')
    return new DirectoryTarget(target.name, resolve(dirname(configPath), target.path))
  const { accessKeyId, secretAccessKey: source } = target
  const secretAccessKey = source && (await readSecret(source, configPath, `${setting}.secretAccessKey`))
  // The SDK is large, so it is loaded only for S3 targets.
  const { S3Target } = await import('./s3-target.ts')
  const hasKeys = accessKeyId !== undefined && secretAccessKey !== undefined
  return new S3Target(target.name, {
    ...target,
    credentials: hasKeys ? { accessKeyId, secretAccessKey } : undefined,
  })
}

function isEndpoint(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return false
  return url.username === '' && url.password === '' && url.pathname === '/' && url.search + url.hash === ''
}
