import type { Vouchers } from '../../../shared/auth/authenticate.ts'
import type { AuditLog } from '../../audit/audit-log.ts'
import type { OwnTokens } from '../../auth/own-tokens.ts'
import type { Revocations } from '../../auth/revocations.ts'
import type { Sessions } from '../../auth/sessions.ts'
import type { Tickets } from '../../auth/tickets.ts'
import type { TokenStore } from '../../auth/token-store.ts'
import type { RequestParts } from '../request/request-parts.ts'

/** The parts used by handlers of tokens, tickets, sessions, users and the audit. */
export interface AccessParts extends RequestParts {
  readonly vouchers: Vouchers
  readonly audit: Pick<AuditLog, 'record' | 'folder'>
  readonly tokens: TokenHandling
  readonly tickets: Tickets
  readonly exports: { readonly isEnabled: boolean }
  /** Undefined: the page has no dissector. */
  readonly dissector: { readonly build: string } | undefined
}

/** The parts used by handlers of tokens. */
export interface TokenHandling {
  readonly own: OwnTokens
  readonly store: TokenStore
  readonly revocations: Revocations
  readonly sessions: Sessions
}
