/** Who is signed in and with which rights, their tokens and, if permitted, the audit. */
import { may } from '../base/session.ts'
import { useSurroundings } from '../parts/context.ts'
import { TEXTS } from '../texts.ts'
import { Audit } from './audit.tsx'
import { Tokens } from './tokens.tsx'
import { Users } from './users.tsx'

export function AccessPage() {
  const { session } = useSurroundings()
  const { access: texts } = TEXTS
  const { devices, filters, spanMaxS } = session.bounds
  return (
    <section aria-labelledby="access-title">
      <h1 id="access-title">{texts.title}</h1>
      <dl class="me">
        <div>
          <dt>{texts.me}</dt>
          <dd>{session.user}</dd>
        </div>
        <div>
          <dt>{texts.scopes}</dt>
          <dd class="mono">{session.scopes.join('  ')}</dd>
        </div>
        {devices.length + filters.length === 0 && spanMaxS === undefined ? null : (
          <div>
            <dt>{texts.bounds}</dt>
            <dd class="mono">
              {[...devices, ...filters].join('  ')} {spanMaxS === undefined ? '' : `${spanMaxS} s`}
            </dd>
          </div>
        )}
        <div>
          <dt>{texts.gateway}</dt>
          <dd class="mono">{session.version}</dd>
        </div>
      </dl>
      <Tokens />
      {may(session, 'admin') ? <Users /> : null}
      {may(session, 'audit:read') ? <Audit /> : null}
    </section>
  )
}
