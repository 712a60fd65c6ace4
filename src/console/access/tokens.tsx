/** Tokens: existing ones, and new ones with the user's rights or fewer. */
import { useState } from 'preact/hooks'
import { orderedToken, TOKEN_PARAMETERS, USUAL_SCOPES } from '../../shared/contract/token-parameters.ts'
import type { Parameter } from '../../shared/query/query-parameters.ts'
import { answered, gateway, Problem, type Schemas } from '../base/ask-gateway.ts'
import { useAction, useAsked } from '../base/asked.ts'
import { instantOfIso, instantText } from '../base/instants.ts'
import { ParameterField } from '../download/parameter-field.tsx'
import { ConfirmButton } from '../parts/confirm-button.tsx'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'

const EVERY_MS = 15_000

export function Tokens() {
  const { access: texts } = TEXTS
  const list = useAsked(async (signal) => (await answered(gateway.GET('/v1/tokens', { signal }))).tokens, {
    key: 'tokens',
    everyMs: EVERY_MS,
  })
  const rows = (list.value ?? []).filter(({ revokedAt }) => revokedAt === null)
  return (
    <section aria-labelledby="tokens-title">
      <h2 id="tokens-title">{texts.tokens}</h2>
      <Failure failure={list.failure} again={list.again} />
      {list.value === undefined && list.failure === undefined ? <Waiting /> : null}
      {list.value !== undefined && rows.length === 0 ? <Empty>{texts.noTokens}</Empty> : null}
      {rows.length === 0 ? null : (
        <DataTable label={texts.tokens} columns={texts.tokenColumns}>
          {rows.map((token) => (
            <TokenRow key={token.id} token={token} onGone={list.again} />
          ))}
        </DataTable>
      )}
      <NewToken onMade={list.again} />
    </section>
  )
}

function TokenRow({ token, onGone }: { readonly token: Schemas['Token']; readonly onGone: () => void }) {
  const { access: texts } = TEXTS
  const { zone } = useSurroundings()
  const revoke = async (): Promise<void> => {
    await answered(gateway.DELETE('/v1/tokens/{id}', { params: { path: { id: token.id } } }))
    onGone()
  }
  return (
    <tr>
      <td>
        {token.note ?? (token.kind === 'session' ? <span class="quiet">{texts.session}</span> : TEXTS.none)}
      </td>
      <td>{token.user}</td>
      <td class="mono wide">{token.scopes.join(' ')}</td>
      <td class="mono">{token.bounds.devices.join(' ') || <span class="quiet">{texts.allDevices}</span>}</td>
      <td class="mono">{instantText(instantOfIso(token.expiresAt), zone, 0)}</td>
      <td class="card-actions">
        <ConfirmButton label={texts.revoke} subject={token.note ?? token.id} isDangerous action={revoke}>
          <p>{texts.revokeSure}</p>
        </ConfirmButton>
      </td>
    </tr>
  )
}

function NewToken({ onMade }: { readonly onMade: () => void }) {
  const { access: texts } = TEXTS
  const [values, setValues] = useState<Readonly<Record<string, string>>>({ Scopes: USUAL_SCOPES })
  const [problem, setProblem] = useState<Problem | undefined>()
  const [made, setMade] = useState<string | undefined>()
  const { isBusy, failure, run } = useAction()
  const make = async (): Promise<void> => {
    setProblem(undefined)
    try {
      const given = orderedToken(Object.entries(values).filter(([, value]) => value !== ''))
      const answer = await answered(
        gateway.POST('/v1/tokens', { params: { query: Object.fromEntries(given) } }),
      )
      setMade(answer.token)
      onMade()
    } catch (error) {
      if (!(error instanceof Problem) || error.param === undefined) throw error
      setProblem(error)
    }
  }
  return (
    <details class="new-token">
      <summary>{texts.newToken}</summary>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          run(make)
        }}
      >
        {Object.values(TOKEN_PARAMETERS).map((row: Parameter) => (
          <ParameterField
            key={row.name}
            parameter={row}
            value={values[row.name] ?? ''}
            isRestriction
            isRequired={row.name === 'Devices' || row.name === 'Scopes'}
            problem={problem?.param === row.name ? problem : undefined}
            onChange={(value) => setValues((before) => ({ ...before, [row.name]: value }))}
          />
        ))}
        <button type="submit" class="primary" disabled={isBusy}>
          {texts.make}
        </button>
      </form>
      <Failure failure={failure} />
      {made === undefined ? null : (
        <p class="made" role="status">
          {texts.told} <Value text={made} />
        </p>
      )}
    </details>
  )
}
