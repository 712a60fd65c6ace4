/** Settings that the gateway and the appliance have in common. */
import { resolve } from 'node:path'
import { z } from 'zod'
import { CIDR_RULE, isCidr } from './networks.ts'

/** An IANA name. */
export const zoneNameSchema = z.string().refine(isTimeZone, 'must be an IANA name such as Europe/Berlin')

/** Default: the zone of the machine. */
export const timeZoneSchema = zoneNameSchema.default(() => Intl.DateTimeFormat().resolvedOptions().timeZone)

export const logLevelSchema = z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info')

/** Paths of PEM files. */
const tlsSchema = z.strictObject({
  cert: z.string().min(1),
  key: z.string().min(1),
  clientCa: z.string().min(1).optional(),
})

/** Address and port of an HTTP server; port 0 = any free one. With `tls` it accepts HTTPS only. */
export function listenSchema(defaultPort: number) {
  return z
    .strictObject({
      host: z.string().default('127.0.0.1'),
      port: z.int().min(0).max(65_535).default(defaultPort),
      tls: tlsSchema.optional(),
      allowInsecure: z.boolean().default(false),
      maxConnections: z.int().min(1).max(1_000_000).optional(),
      maxConnectionsPerAddress: z.int().min(1).max(1_000_000).optional(),
      trustedProxies: z.array(z.string().refine(isCidr, CIDR_RULE)).default([]),
      hstsMaxAgeS: z.int().min(0).max(63_072_000).default(0),
    })
    .refine((listen) => listen.allowInsecure || !isInsecure(listen), {
      path: ['host'],
      message:
        'is not a loopback address, so passwords would cross the network unencrypted: set listen.tls, or set listen.allowInsecure: true if a proxy in front encrypts',
    })
    .prefault({})
}

/** The settings of login-gate.ts. */
export const loginsSchema = z
  .strictObject({
    waitingMax: z.int().min(1).max(10_000).default(128),
    wrongMax: z.int().min(1).max(1_000).default(5),
    pauseMaxS: z.int().min(1).max(86_400).default(60),
  })
  .prefault({})

/** Limits of uploads, of which `runningMax` may be in progress. */
export function uploadsSchema(runningMax: number) {
  return z
    .strictObject({
      runningMax: z.int().min(0).max(1_000).default(runningMax),
      perUserMax: z.int().min(1).max(1_000).default(2),
      bytesMax: z
        .int()
        .min(1_024)
        .max(2 ** 50)
        .default(64 * 2 ** 30),
      idleTimeoutMs: z.int().min(100).max(3_600_000).default(30_000),
    })
    .prefault({})
}
export type UploadSettings = Readonly<z.infer<ReturnType<typeof uploadsSchema>>>

/** For the list that is the setting of this name. */
export function refuseNameTwice(setting: string) {
  return (entries: readonly { readonly name: string }[], context: z.RefinementCtx): void => {
    const seen = new Map<string, number>()
    for (const [index, { name }] of entries.entries()) {
      const first = seen.get(name)
      if (first === undefined) seen.set(name, index)
      else {
        context.addIssue({
          code: 'custom',
          path: [index, 'name'],
          message: `"${name}" is already the name of ${setting}[${first}]`,
        })
      }
    }
  }
}

type Listen = z.infer<ReturnType<typeof listenSchema>>

/** The same with the paths of `tls` made absolute, relative to the configuration's folder. */
export function resolveListen(listen: Listen, folder: string): Listen {
  if (listen.tls === undefined) return listen
  const { cert, key, clientCa } = listen.tls
  return {
    ...listen,
    tls: {
      cert: resolve(folder, cert),
      key: resolve(folder, key),
      clientCa: clientCa === undefined ? undefined : resolve(folder, clientCa),
    },
  }
}

/** Whether passwords reach the server unencrypted. */
export function isInsecure({ host, tls }: { readonly host: string; readonly tls?: unknown }): boolean {
  return tls === undefined && !isLoopback(host)
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined
  } catch {
    return false
  }
}
