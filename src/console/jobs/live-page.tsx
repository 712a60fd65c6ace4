/** What happens on the devices, as it happens. */
import { useEffect, useState } from 'preact/hooks'
import { answered, gateway } from '../base/ask-gateway.ts'
import { pause, useAsked } from '../base/asked.ts'
import { instantText } from '../base/instants.ts'
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { useSurroundings } from '../parts/context.ts'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { allEvents, followEvents, onDeviceEvent } from './device-events.ts'

/** A browser holds six connections to a gateway without HTTP/2; two are for what else is asked. */
const DEVICES_MAX = 4
const AGAIN_MS = 2_000
const ROWS_MAX = 300

export function LivePage() {
  const { live: texts } = TEXTS
  const { values } = usePageState()
  const devices = useAsked(
    async (signal) => (await answered(gateway.GET('/v1/devices', { signal }))).devices,
    { key: 'devices' },
  )
  const names = (devices.value ?? []).map(({ name }) => name)
  const chosen = (values.live ?? names.slice(0, DEVICES_MAX).join(','))
    .split(',')
    .filter((name) => names.includes(name))
  const toggle = (name: string): void => {
    const next = chosen.includes(name)
      ? chosen.filter((other) => other !== name)
      : [...chosen, name].slice(-DEVICES_MAX)
    showState(changed(currentState(), { live: next.join(',') }))
  }
  return (
    <section aria-labelledby="live-title">
      <h1 id="live-title">{texts.title}</h1>
      <p class="quiet">{texts.explain}</p>
      <Failure failure={devices.failure} again={devices.again} />
      <ul class="chips" aria-label={TEXTS.download.devices}>
        {names.slice(0, 200).map((name) => (
          <li key={name}>
            <button type="button" aria-pressed={chosen.includes(name)} onClick={() => toggle(name)}>
              {name}
            </button>
          </li>
        ))}
      </ul>
      {names.length > DEVICES_MAX ? <p class="quiet">{texts.limit}</p> : null}
      <div class="followers">
        {chosen.map((name) => (
          <Follower key={name} device={name} />
        ))}
      </div>
      <EventTable devices={chosen} />
    </section>
  )
}

/** Listens for as long as it is in the page, and says how it goes. */
function Follower({ device }: { readonly device: string }) {
  const [state, setState] = useState<'connecting' | 'waiting' | 'broken'>('connecting')
  useEffect(() => {
    const leaving = new AbortController()
    void (async () => {
      while (!leaving.signal.aborted) {
        await followEvents(device, leaving.signal, () => setState('waiting')).catch(() => undefined)
        if (leaving.signal.aborted) return
        setState('broken')
        await pause(AGAIN_MS, leaving.signal)
      }
    })()
    return () => leaving.abort()
  }, [device])
  return (
    <p class="follower" role="status">
      <strong>{device}</strong> <span class={state === 'broken' ? 'bad' : 'quiet'}>{TEXTS.live[state]}</span>
    </p>
  )
}

function EventTable({ devices }: { readonly devices: readonly string[] }) {
  const { live: texts } = TEXTS
  const { zone } = useSurroundings()
  const [, redraw] = useState(0)
  useEffect(() => onDeviceEvent(() => redraw((round) => round + 1)), [])
  const rows = allEvents()
    .filter(({ device }) => devices.includes(device))
    .slice(0, ROWS_MAX)
  if (devices.length === 0) return <Empty>{TEXTS.fleet.noDevices}</Empty>
  if (rows.length === 0) return <Waiting text={texts.waiting} />
  return (
    <DataTable label={texts.title} columns={texts.columns} isLive>
      {rows.map(({ device, id, kind, atNs, facts }) => (
        <tr key={`${device} ${id}`}>
          <td class="mono">{instantText(atNs, zone, 3)}</td>
          <td>{device}</td>
          <td>{kind}</td>
          <td class="mono wide">{facts}</td>
        </tr>
      ))}
    </DataTable>
  )
}
