/** Exports that are ordered repeatedly. */
import { isRelativeTime } from '../../shared/query/time/query-time.ts'
import { answered, gateway, type Schemas } from '../base/ask-gateway.ts'
import { useAsked } from '../base/asked.ts'
import { instantOfIso, instantText } from '../base/instants.ts'
import { formatPageState } from '../base/page-url.ts'
import { may } from '../base/session.ts'
import { ConfirmButton } from '../parts/confirm-button.tsx'
import { useSurroundings } from '../parts/context.ts'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { QueryText } from './export-row.tsx'

const EVERY_MS = 10_000

export function Schedules() {
  const { exports: texts } = TEXTS
  const list = useAsked(
    async (signal) => (await answered(gateway.GET('/v1/schedules', { signal }))).schedules,
    {
      key: 'schedules',
      everyMs: EVERY_MS,
    },
  )
  const rows: readonly Schemas['ExportSchedule'][] = list.value ?? []
  return (
    <section aria-labelledby="schedules-title">
      <h2 id="schedules-title">{texts.schedules}</h2>
      <Failure failure={list.failure} again={list.again} />
      {list.value !== undefined && rows.length === 0 ? <Empty>{texts.noSchedules}</Empty> : null}
      {rows.length === 0 ? null : (
        <DataTable label={texts.schedules} columns={texts.scheduleColumns}>
          {rows.map((schedule) => (
            <ScheduleRow key={schedule.id} schedule={schedule} onGone={list.again} />
          ))}
        </DataTable>
      )}
    </section>
  )
}

function ScheduleRow({
  schedule,
  onGone,
}: {
  readonly schedule: Schemas['ExportSchedule']
  readonly onGone: () => void
}) {
  const { exports: texts } = TEXTS
  const { session, zone } = useSurroundings()
  const time = (iso: string | null) => (iso === null ? TEXTS.none : instantText(instantOfIso(iso), zone, 0))
  const end = async (): Promise<void> => {
    await answered(gateway.DELETE('/v1/schedules/{id}', { params: { path: { id: schedule.id } } }))
    onGone()
  }
  return (
    <tr>
      <td class="mono">{schedule.cron}</td>
      <td>{schedule.cronZone}</td>
      <td>
        <QueryText query={schedule.query} devices={[TEXTS.download.allDevices]} />
      </td>
      <td class="mono">{time(schedule.nextAt)}</td>
      <td class="mono">
        {time(schedule.lastAt)}{' '}
        {schedule.error === null ? null : <span class="bad">{schedule.error.detail}</span>}
      </td>
      <td>{schedule.user}</td>
      <td class="card-actions">
        {may(session, 'export:create') ? (
          <div class="actions">
            {isForForm(schedule) ? (
              <a class="button" href={formLink(schedule, session.timeZone)} title={texts.changeHint}>
                {texts.change}
              </a>
            ) : null}
            <ConfirmButton label={texts.end} subject={schedule.cron} isDangerous action={end}>
              <p>{texts.endSure}</p>
            </ConfirmButton>
          </div>
        ) : null}
      </td>
    </tr>
  )
}

/** Whether the form can have its range. */
function isForForm({ query }: Schemas['ExportSchedule']): boolean {
  const asked = new URLSearchParams(query)
  const ends = ['TSBegin', 'TSEnd'].map((name) => asked.get(name) ?? '')
  return ends.every((end) => isRelativeTime(end))
}

/** The timeline with the form filled in as for this schedule; without TSZone its times are in the gateway's zone. */
function formLink({ query, cron, cronZone }: Schemas['ExportSchedule'], timeZone: string): string {
  const asked = Object.fromEntries(new URLSearchParams(query))
  const values = { TSZone: timeZone, ...asked, Cron: cron, CronZone: cronZone }
  return formatPageState({ view: 'timeline', values })
}
