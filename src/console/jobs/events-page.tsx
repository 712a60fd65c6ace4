/** Events on the devices, live. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { countText } from '../../shared/base/amounts.ts'
import { messageOf } from '../base/ask-gateway.ts'
import { type DeviceReport, useDevices } from '../base/devices.ts'
import { type FleetEvent, GAP, type HeardEvents, useHeardEvents } from '../base/heard-events.ts'
import { instantText } from '../base/instants.ts'
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { useSurroundings } from '../parts/context.ts'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'

/** Names and sites of devices seldom change. */
const DEVICES_EVERY_MS = 30_000
const ROWS_MAX = 300
const NAMED_MAX = 6
/** Minimum interval between announcements to screen readers. */
const SAID_EVERY_MS = 10_000

export function EventsPage() {
  const { events: texts } = TEXTS
  const { values } = usePageState()
  const { events } = useSurroundings()
  const devices = useDevices(DEVICES_EVERY_MS).value ?? []
  const heard = useHeardEvents(events)
  const [paused, setPaused] = useState<readonly FleetEvent[] | undefined>()
  const siteOf = new Map(devices.map(({ name, site }) => [name, site ?? '']))
  const found = (paused ?? heard.events).filter(
    ({ device = '', kind, facts }) =>
      includes(device, values['live-device']) &&
      (values['live-site'] ?? siteOf.get(device) ?? '') === (siteOf.get(device) ?? '') &&
      includes(`${kind} ${facts}`, values['live-text']),
  )
  return (
    <section aria-labelledby="live-title">
      <h1 id="live-title">{texts.title}</h1>
      <p class="quiet">{texts.explain}</p>
      <div class="controls">
        <Filters devices={devices} values={values} />
        <button
          type="button"
          aria-pressed={paused !== undefined}
          onClick={() => setPaused(paused === undefined ? heard.events : undefined)}
        >
          {paused === undefined ? texts.pause : texts.resume}
        </button>
      </div>
      <Connection heard={heard} />
      <Latest event={found[0]} count={found.length} />
      <EventTable found={found} heard={heard} />
    </section>
  )
}

function includes(text: string, wanted = ''): boolean {
  return text.toLowerCase().includes(wanted.toLowerCase())
}

interface FiltersProps {
  readonly devices: readonly DeviceReport[]
  readonly values: Readonly<Record<string, string>>
}

function Filters({ devices, values }: FiltersProps) {
  const { events: texts } = TEXTS
  const sites = [...new Set(devices.flatMap(({ site }) => site ?? []))].toSorted()
  const keep = (name: string, value: string): void =>
    showState(changed(currentState(), { [name]: value === '' ? undefined : value }))
  return (
    <>
      <input
        type="search"
        aria-label={texts.device}
        placeholder={texts.device}
        value={values['live-device'] ?? ''}
        onInput={(event) => keep('live-device', event.currentTarget.value)}
      />
      {sites.length === 0 ? null : (
        <label>
          {texts.site}
          <select
            value={values['live-site'] ?? ''}
            onChange={(event) => keep('live-site', event.currentTarget.value)}
          >
            <option value="">{texts.allSites}</option>
            {sites.map((site) => (
              <option key={site}>{site}</option>
            ))}
          </select>
        </label>
      )}
      <input
        type="search"
        aria-label={texts.text}
        placeholder={texts.text}
        value={values['live-text'] ?? ''}
        onInput={(event) => keep('live-text', event.currentTarget.value)}
      />
    </>
  )
}

function Connection({ heard: { isConnected, failure, fleet } }: { readonly heard: HeardEvents }) {
  const { events: texts } = TEXTS
  if (!isConnected)
    return (
      <p class={failure === undefined ? 'quiet' : 'bad'} role="status">
        {failure === undefined ? texts.connecting : `${texts.broken} ${messageOf(failure)}`}
      </p>
    )
  const silent = fleet?.silent ?? []
  return (
    <p role="status">
      <span class="good">{texts.listening}</span>{' '}
      {silent.length === 0 ? null : (
        <span class="bad">
          {texts.silent(silent.length)}{' '}
          {silent
            .slice(0, NAMED_MAX)
            .map(({ device, code }) => `${device} (${code})`)
            .join(', ')}
          {silent.length > NAMED_MAX ? ' …' : ''}
        </span>
      )}
    </p>
  )
}

/**
 * Announced, not shown: only the latest event, because reading out each row of a growing list leaves no time to read.
 */
function Latest({ event, count }: { readonly event: FleetEvent | undefined; readonly count: number }) {
  const [said, setSaid] = useState('')
  const latest = useRef('')
  latest.current =
    event === undefined ? '' : TEXTS.events.latest(count, `${event.device ?? ''} ${event.kind}`)
  useEffect(() => {
    const timer = setInterval(() => setSaid(latest.current), SAID_EVERY_MS)
    return () => clearInterval(timer)
  }, [])
  return (
    <p class="hidden" role="status">
      {said}
    </p>
  )
}

function EventTable({
  found,
  heard,
}: {
  readonly found: readonly FleetEvent[]
  readonly heard: HeardEvents
}) {
  const { events: texts } = TEXTS
  const { zone } = useSurroundings()
  if (heard.events.length === 0) return heard.isConnected ? <Waiting text={texts.waiting} /> : null
  if (found.length === 0) return <Empty>{texts.noneFound}</Empty>
  return (
    <>
      <DataTable label={texts.title} columns={texts.columns}>
        {found.slice(0, ROWS_MAX).map(({ key, device, kind, atNs, facts }) => (
          <tr key={key}>
            <td class="mono">{instantText(atNs, zone, 3)}</td>
            <td>{device ?? TEXTS.none}</td>
            <td>{kind === GAP ? <span class="bad">{texts.gap}</span> : kind}</td>
            <td class="mono wide">{facts}</td>
          </tr>
        ))}
      </DataTable>
      {found.length <= ROWS_MAX ? null : (
        <p class="quiet">
          {texts.newest} {ROWS_MAX} / {countText(found.length)}
        </p>
      )}
    </>
  )
}
