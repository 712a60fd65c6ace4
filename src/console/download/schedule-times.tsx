/** The next runs of the schedule that is being typed, and usual schedules to choose from. */
import { type Asked, useAsked } from '../base/asked.ts'
import { instantText, zoneText } from '../base/instants.ts'
import { changed, currentState, showState } from '../base/page-url.ts'
import { useSurroundings } from '../parts/context.ts'
import { TEXTS } from '../texts.ts'

const TYPED_MS = 250

const PRESETS: Readonly<Record<string, string>> = {
  [TEXTS.download.hourly]: '5 * * * *',
  [TEXTS.download.daily]: '0 3 * * *',
  [TEXTS.download.weekly]: '0 3 * * 1',
}

/** Nothing while Cron is empty. Its failure is a Problem of Cron or CronZone. */
export function useDueTimes({
  Cron: cron = '',
  CronZone: cronZone = '',
}: Readonly<Record<string, string>>): Asked<readonly bigint[]> {
  const { timeZone } = useSurroundings().session
  return useAsked(
    async () => {
      const { dueTimes } = await import('./due-times.ts')
      return dueTimes({ cron, cronZone }, { timeZone, afterMs: Date.now() })
    },
    { key: cron === '' ? undefined : `${cron}\n${cronZone}`, delayMs: TYPED_MS },
  )
}

export function ScheduleTimes({ due }: { readonly due: Asked<readonly bigint[]> }) {
  const { download: texts } = TEXTS
  const { zone } = useSurroundings()
  const isShown = due.value !== undefined && due.failure === undefined
  return (
    <>
      <div class="actions presets">
        {Object.entries(PRESETS).map(([name, cron]) => (
          <button
            key={name}
            type="button"
            title={cron}
            onClick={() => showState(changed(currentState(), { Cron: cron }))}
          >
            {name}
          </button>
        ))}
      </div>
      <p class="due" role="status">
        {isShown ? (
          <>
            <span class="quiet">{texts.nextRuns}</span>{' '}
            {due.value.map((ns, index) => (
              <span key={ns}>
                {index === 0 ? '' : ', '}
                <span class="mono">{instantText(ns, zone, 0)}</span>
              </span>
            ))}{' '}
            <span class="quiet">{zoneText(zone, due.value[0] ?? 0n)}</span>
          </>
        ) : null}
      </p>
    </>
  )
}
