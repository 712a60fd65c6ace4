/** The audit log, newest lines first. */
import { useState } from 'preact/hooks'
import { answered, gateway, type Schemas } from '../base/ask-gateway.ts'
import { useAsked } from '../base/asked.ts'
import { instantOfIso, instantText } from '../base/instants.ts'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { auditFacts, shownFact } from './audit-facts.ts'

type Entry = Schemas['AuditPage']['entries'][number]

const LINES = 50
const EXAMPLES: Readonly<Record<string, string>> = { Event: 'download', From: '-1h' }
const TYPED_MS = 300

export function Audit() {
  const { access: texts } = TEXTS
  const { zone } = useSurroundings()
  const [filter, setFilter] = useState({ User: '', Event: '', From: '' })
  const [after, setAfter] = useState<string | undefined>()
  const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
  const query = { Limit: LINES, ...given, ...(after === undefined ? {} : { After: after }) }
  const page = useAsked(
    async (signal) => await answered(gateway.GET('/v1/audit', { params: { query }, signal })),
    { key: JSON.stringify(query), delayMs: TYPED_MS },
  )
  const next = page.value?.next
  return (
    <section aria-labelledby="audit-title">
      <h2 id="audit-title">{texts.audit}</h2>
      <div class="controls">
        {(['User', 'Event', 'From'] as const).map((name) => (
          <label key={name}>
            {name}
            <input
              class="mono"
              value={filter[name]}
              placeholder={name in EXAMPLES ? TEXTS.example(EXAMPLES[name] ?? '') : ''}
              onInput={(event) => {
                setAfter(undefined)
                setFilter((before) => ({ ...before, [name]: event.currentTarget.value }))
              }}
            />
          </label>
        ))}
      </div>
      <Failure failure={page.failure} again={page.again} />
      {page.value === undefined && page.failure === undefined ? <Waiting /> : null}
      {page.value?.entries.length === 0 ? <Empty>{texts.auditEmpty}</Empty> : null}
      {page.value === undefined || page.value.entries.length === 0 ? null : (
        <DataTable label={texts.audit} columns={texts.auditColumns}>
          {page.value.entries.map((entry) => (
            <tr key={`${entry.chain} ${entry.seq}`}>
              <td class="mono">{instantText(instantOfIso(entry.at), zone, 3)}</td>
              <td>{entry.user ?? TEXTS.none}</td>
              <td>{entry.event}</td>
              <td class="mono">{entry.address ?? TEXTS.none}</td>
              <td class="wide">
                <Facts entry={entry} />
              </td>
            </tr>
          ))}
        </DataTable>
      )}
      {next === null || next === undefined ? null : (
        <button type="button" onClick={() => setAfter(next)}>
          {texts.older}
        </button>
      )}
    </section>
  )
}

/** The facts of the event, each with its name; the line itself, as it is in the file, on request. */
function Facts({ entry }: { readonly entry: Entry }) {
  const { zone } = useSurroundings()
  return (
    <>
      <ul class="query facts">
        {auditFacts(entry).map(([name, value]) => (
          <li key={name}>
            <span class="quiet">{name}</span> <Value text={value} shown={shownFact(name, value, zone)} />
          </li>
        ))}
      </ul>
      <details>
        <summary class="quiet">{TEXTS.access.line}</summary>
        <Value text={JSON.stringify(entry)} hasSign />
      </details>
    </>
  )
}
