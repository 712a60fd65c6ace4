/**
 * Settings of devices, whether configured individually or found by a discovery; part of src/gateway/gateway-config.ts.
 */
import { isIP } from 'node:net'
import { z } from 'zod'
import { secretSchema } from '../../../shared/base/config-file.ts'
import { CIDR_RULE, isCidr } from '../../../shared/base/networks.ts'
import { FETCH_COMPRESSIONS } from '../../device/device.ts'
import { DEVICE_KINDS, IGNORABLE_PARAMETERS } from '../../device/device-kind.ts'
import { isPlainUrl } from './plain-host.ts'

export const DEVICE_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/
const SITE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

const PLAIN_URL_RULE =
  'must be http://host:port or https://host:port, optionally with a path; the host is a name or an address in its usual form, without user, query or fragment'

/** How the gateway deals with a device, wherever its address comes from. */
const accessShape = {
  user: z
    .string()
    .min(1)
    .regex(/^[^:\p{Cc}]+$/u, 'must not contain a colon')
    .optional(),
  password: secretSchema.optional(),
  token: secretSchema.optional(),
  site: z.string().regex(SITE_NAME, 'must be 1 to 63 of letters, digits, . _ -').optional(),
  ca: z.string().min(1).optional(),
  cert: z.string().min(1).optional(),
  key: z.string().min(1).optional(),
  fetchCompression: z.enum(FETCH_COMPRESSIONS).default('none'),
  kind: z.enum(DEVICE_KINDS).optional(),
  ignores: z.array(z.enum(IGNORABLE_PARAMETERS)).optional(),
}

export const deviceSchema = z
  .strictObject({
    name: z.string().regex(DEVICE_NAME, 'must be 1 to 63 of a-z 0-9 . _ - and begin with a letter or digit'),
    url: z.string().refine(isPlainUrl, PLAIN_URL_RULE),
    ...accessShape,
  })
  .superRefine(checkAccess)

/** One appliance under two names would return each packet twice, and be given twice as many streams as it can serve. */
export function refuseUrlTwice(entries: readonly { readonly url: string }[], context: z.RefinementCtx): void {
  const seen = new Map<string, number>()
  for (const [index, { url }] of entries.entries()) {
    // Invalid URLs have been rejected already.
    const spelt = (URL.parse(url)?.href ?? url).replace(/\/$/, '')
    const first = seen.get(spelt)
    if (first === undefined) seen.set(spelt, index)
    else {
      const message = `is already the URL of devices[${first}]; a device has one name`
      context.addIssue({ code: 'custom', path: [index, 'url'], message })
    }
  }
}

const endpointSliceSchema = z.strictObject({
  url: z.string().refine(isPlainUrl, PLAIN_URL_RULE).default('https://kubernetes.default.svc'),
  namespace: z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be the name of a namespace'),
  labelSelector: z.string().max(1_000).default(''),
  port: z.string().max(63).optional(),
  nameBy: z.enum(['pod', 'node']).default('pod'),
  tokenFile: z.string().default('/var/run/secrets/kubernetes.io/serviceaccount/token'),
  caFile: z.string().default('/var/run/secrets/kubernetes.io/serviceaccount/ca.crt'),
})

export const discoverySchema = z
  .strictObject({
    srv: z.string().min(1).max(253).optional(),
    dnsServers: z.array(z.string().refine(isServer, 'must be an IP address, or one with a port')).default([]),
    endpointSlice: endpointSliceSchema.optional(),
    intervalS: z.number().min(0.1).max(86_400).default(30),
    keepS: z.number().min(0).max(86_400).default(600),
    scheme: z.enum(['http', 'https']).default('https'),
    allowCidrs: z.array(z.string().refine(isCidr, CIDR_RULE)).default([]),
    ...accessShape,
  })
  .superRefine(checkAccess)
  .refine((entry) => (entry.srv === undefined) !== (entry.endpointSlice === undefined), {
    message: 'must have exactly one of srv and endpointSlice',
  })

export type DeviceSettings = z.infer<typeof deviceSchema>
export type DiscoverySettings = z.infer<typeof discoverySchema>
export type EndpointSliceSettings = z.infer<typeof endpointSliceSchema>
/** The settings that configured and discovered devices have in common. */
export type AccessSettings = Pick<DeviceSettings, keyof typeof accessShape>

function checkAccess(entry: AccessSettings, context: z.RefinementCtx): void {
  const isBasic = entry.user !== undefined && entry.password !== undefined && entry.token === undefined
  const isBearer = entry.user === undefined && entry.password === undefined && entry.token !== undefined
  if (!isBasic && !isBearer)
    context.addIssue({ code: 'custom', message: 'must have user and password, or token alone' })
  if (entry.kind === 'capfleet' && entry.ignores !== undefined)
    context.addIssue({ code: 'custom', path: ['ignores'], message: 'is for third-party devices' })
  for (const [index, name] of (entry.ignores ?? []).entries())
    if (entry.ignores?.indexOf(name) !== index)
      context.addIssue({ code: 'custom', path: ['ignores', index], message: `names ${name} twice` })
  if ((entry.cert === undefined) !== (entry.key === undefined))
    context.addIssue({ code: 'custom', message: 'must have both cert and key, or neither' })
}

function isServer(text: string): boolean {
  return isIP(text) !== 0 || isIP(text.replace(/:\d{1,5}$/, '').replace(/^\[(.*)\]$/, '$1')) !== 0
}
