/** Exports with their progress, and the schedules that order them. */
import { useEffect, useState } from 'preact/hooks'
import { answered, gateway, type Schemas } from '../base/ask-gateway.ts'
import { useAsked } from '../base/asked.ts'
import { usePageState } from '../base/page-url.ts'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { ENDED, ExportRow } from './export-row.tsx'
import { Schedules } from './schedules.tsx'

const EVERY_MS = 5_000
const SHOWN_MAX = 100
/** A browser opens at most six connections to a gateway that speaks HTTP/1.1, and needs some for other requests. */
const FOLLOWED_MAX = 3

export function ExportsPage() {
  const { exports: texts } = TEXTS
  const { values } = usePageState()
  const list = useAsked(
    async (signal) =>
      await answered(gateway.GET('/v1/exports', { params: { query: { Limit: SHOWN_MAX } }, signal })),
    {
      key: 'exports',
      everyMs: EVERY_MS,
    },
  )
  const rows: readonly Schemas['Export'][] = list.value?.exports ?? []
  const running = rows.filter(({ state }) => !ENDED.has(state))
  const followed = new Set(running.slice(0, FOLLOWED_MAX).map(({ id }) => id))
  const [changes, setChanges] = useState<ReadonlyMap<string, Schemas['Export']>>(new Map())
  // Updates from before the list was requested are outdated, and a broken stream sends no more.
  useEffect(() => setChanges(new Map()), [list.value])
  return (
    <section aria-labelledby="exports-title">
      <h1 id="exports-title">{texts.title}</h1>
      <Failure failure={list.failure} again={list.again} />
      {list.value === undefined && list.failure === undefined ? <Waiting /> : null}
      {list.value?.workers === 0 ? <p class="failure">{texts.noWorkers}</p> : null}
      {list.value !== undefined && rows.length === 0 ? <Empty>{texts.empty}</Empty> : null}
      {rows.length > 0 ? (
        <DataTable label={texts.title} columns={texts.columns} numbers={[4]}>
          {rows.map((row) => (
            <ExportRow
              key={row.id}
              order={(followed.has(row.id) ? changes.get(row.id) : undefined) ?? row}
              isMarked={values.export === row.id}
              isFollowed={followed.has(row.id)}
              onChange={(next) => setChanges((before) => new Map([...before, [next.id, next]]))}
              onGone={list.again}
            />
          ))}
        </DataTable>
      ) : null}
      <Schedules />
    </section>
  )
}
