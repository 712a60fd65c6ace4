/** Settings of identity providers whose tokens are accepted; part of src/gateway/gateway-config.ts. */
import { z } from 'zod'
import { boundsSchema } from '../../shared/auth/bounds.ts'
import { ROLES } from '../../shared/base/scopes.ts'
import { isLoopback } from '../../shared/base/setting-schemas.ts'

/** Asymmetric algorithms only: anyone can verify a signature, but only the provider can create it. */
export const PROVIDER_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'ES512'] as const

const fileSchema = z.strictObject({ file: z.string().min(1) })
const urlSchema = z.strictObject({
  url: z.string().refine(isSafe, 'must be https://..., or http://... on this machine, without a user'),
  ca: z.string().min(1).optional(),
  refreshS: z.int().min(10).max(86_400).default(300),
})

export const providersSchema = z
  .array(
    z.strictObject({
      name: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/, 'must be 1 to 32 of letters, digits, . _ -'),
      issuer: z.string().min(1).max(1_000),
      audience: z.string().min(1).max(1_000),
      jwks: z.union([fileSchema, urlSchema]),
      algorithms: z.array(z.enum(PROVIDER_ALGORITHMS)).min(1).default(['RS256', 'ES256']),
      userClaim: z.string().min(1).default('sub'),
      groupsClaim: z.string().min(1).default('groups'),
      // A list, because an object would reorder keys that look like numbers.
      roles: z.array(boundsSchema.extend({ group: z.string().min(1).max(1_000), role: z.enum(ROLES) })),
    }),
  )
  .default([])

export type ProviderSettings = z.infer<typeof providersSchema>[number]
export type JwksSettings = ProviderSettings['jwks']

/** Anyone able to modify the keys in transit could impersonate any user. */
function isSafe(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return false
  return (
    url.protocol === 'https:' ||
    (url.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, '')))
  )
}
