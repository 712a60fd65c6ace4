/** What is wrong with a link from an alert. A link without a mistake shows the timeline instead. */
import { formatPageState, usePageState } from '../base/page-url.ts'
import { useSurroundings } from '../parts/context.ts'
import { DataTable } from '../parts/data-table.tsx'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { PIVOT_NAMES, pivotedState } from './pivot-link.ts'

export function PivotPage() {
  const { values } = usePageState()
  const { zone } = useSurroundings()
  const { pivot: texts } = TEXTS
  return (
    <section aria-labelledby="pivot-title">
      <h1 id="pivot-title">{texts.title}</h1>
      <Failure failure={mistakeIn(values, zone)} />
      <p>{texts.explain}</p>
      <DataTable label={texts.title} columns={texts.columns}>
        {PIVOT_NAMES.map((name) => (
          <tr key={name}>
            <td class="mono">{name}</td>
            <td>{texts.names[name]}</td>
            <td class="mono wide">{values[name]}</td>
          </tr>
        ))}
      </DataTable>
      <p>
        <a class="button" href={formatPageState({ view: 'timeline', values: {} })}>
          {texts.toTimeline}
        </a>
      </p>
    </section>
  )
}

function mistakeIn(values: Readonly<Record<string, string>>, zone: string): unknown {
  try {
    pivotedState(values, zone)
    return undefined
  } catch (error) {
    return error
  }
}
