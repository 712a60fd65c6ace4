/** What callers may do. Each route of a program names one scope; a role is a named set of them. */
export const SCOPES = [
  'device:read',
  'capture:download',
  'capture:control',
  'capture:upload',
  'capture:delete',
  'export:create',
  'export:read',
  'queue:read',
  'audit:read',
  'admin',
] as const
export type Scope = (typeof SCOPES)[number]

/**
 * What a caller needs to use it. anyone: no credentials. known: credentials, whatever they are good for. system, metrics:
 * none where auth.anonymousSystem or auth.anonymousMetrics is true, else device:read; a known user is told more.
 */
export type Access = Scope | 'anyone' | 'known' | 'system' | 'metrics'

/** Roles from the least to the most powerful: each has the rights of the previous one. */
export const ROLES = ['viewer', 'user', 'full', 'admin'] as const
export type Role = (typeof ROLES)[number]

const VIEWER: readonly Scope[] = ['device:read', 'queue:read']
const USER: readonly Scope[] = [...VIEWER, 'capture:download', 'export:create', 'export:read']
const FULL: readonly Scope[] = [...USER, 'capture:control', 'capture:upload', 'capture:delete', 'audit:read']

export const SCOPES_OF_ROLE: Readonly<Record<Role, ReadonlySet<Scope>>> = {
  viewer: new Set(VIEWER),
  user: new Set(USER),
  full: new Set(FULL),
  admin: new Set(SCOPES),
}

/** The lowest role that has the scope. */
export function roleWith(scope: Scope): Role {
  return ROLES.find((role) => SCOPES_OF_ROLE[role].has(scope)) ?? 'admin'
}
