/** The first packets of the selection as a table, and the bytes of one of them. */
import { useState } from 'preact/hooks'
import { countText } from '../../shared/base/amounts.ts'
import { useAsked } from '../base/asked.ts'
import type { DeviceFailures } from '../base/devices.ts'
import { instantText } from '../base/instants.ts'
import { changed, currentState, formatPageState, showState, usePageState } from '../base/page-url.ts'
import { wiresharkLine } from '../download/command-lines.ts'
import { downloadPairs, type Pairs, queryText } from '../download/parameter-groups.ts'
import { useSurroundings } from '../parts/context.ts'
import { CopyButton, Value } from '../parts/copied.tsx'
import { DataTable } from '../parts/data-table.tsx'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { askHolders, askPackets, type Estimated, type Holder } from './first-packets.ts'
import { summaryOf } from './packet-summary.ts'
import { hexLines, type Packet } from './pcap-packets.ts'

/** Number of devices read at a time: each takes a stream. */
const DEVICES_MAX = 6

export function InsidePage() {
  const { inside: texts } = TEXTS
  const { values } = usePageState()
  const pairs = downloadPairs(values)
  const hasRange = values.TSBegin !== undefined && values.TSEnd !== undefined
  const key = hasRange ? queryText(pairs) : undefined
  const asked = useAsked((signal) => askHolders(pairs, signal), { key })
  const { holders, failures } = asked.value ?? NOBODY
  const devices = shownDevices(values['inside-devices'], holders)
  const found = useAsked((signal) => askPackets(pairs, devices, signal), {
    key: asked.value === undefined ? undefined : `${key} ${devices.join(',')}`,
  })
  const failure = asked.failure ?? found.failure
  return (
    <section aria-labelledby="inside-title" class="inside">
      <div class="controls">
        <h1 id="inside-title">{texts.title}</h1>
        <a class="button" href={formatPageState({ view: 'timeline', values })}>
          {texts.toTimeline}
        </a>
      </div>
      <p class="quiet">{texts.explain}</p>
      {hasRange ? null : <Empty>{texts.noSelection}</Empty>}
      {hasRange && found.value === undefined && failure === undefined ? (
        <Waiting text={texts.loading} />
      ) : null}
      <Failure failure={failure} again={asked.failure === undefined ? found.again : asked.again} />
      <Silent text={texts.silent} failures={failures} />
      <Silent text={texts.brokeOff} failures={found.value?.failures} again={found.again} />
      <HolderChoice holders={holders} devices={devices} />
      {found.value === undefined ? null : <Found packets={found.value.packets} />}
      {hasRange ? <Wireshark pairs={pairs} /> : null}
    </section>
  )
}

const NOBODY: Estimated = { holders: [], failures: new Map() }

interface SilentProps {
  readonly text: string
  readonly failures: DeviceFailures | undefined
  readonly again?: () => void
}

/** A device that does not answer, or breaks off, may have packets of the selection too. */
function Silent({ text, failures = new Map(), again }: SilentProps) {
  if (failures.size === 0) return null
  return (
    <div class="failure" role="status">
      <p>{text}</p>
      <ul>
        {[...failures].map(([device, { detail }]) => (
          <li key={device} data-device={device}>
            {device}: {detail}
          </li>
        ))}
      </ul>
      {again === undefined ? null : (
        <button type="button" onClick={again}>
          {TEXTS.again}
        </button>
      )}
    </div>
  )
}

/** The selected ones, or the first ones. */
function shownDevices(chosen: string | undefined, holders: readonly Holder[]): readonly string[] {
  const names = holders.map(({ device }) => device)
  return (chosen?.split(',') ?? names).filter((name) => names.includes(name)).slice(0, DEVICES_MAX)
}

interface HolderChoiceProps {
  readonly holders: readonly Holder[]
  readonly devices: readonly string[]
}

/** Selects devices if there are more than can be shown at a time. */
function HolderChoice({ holders, devices }: HolderChoiceProps) {
  const { inside: texts } = TEXTS
  if (holders.length < 2) return null
  const toggle = (name: string): void => {
    const next = devices.includes(name) ? devices.filter((other) => other !== name) : [...devices, name]
    if (next.length === 0) return
    // The one selected first is dropped.
    showState(changed(currentState(), { 'inside-devices': next.slice(-DEVICES_MAX).join(',') }))
  }
  return (
    <details class="holders" open={holders.length > DEVICES_MAX}>
      <summary>
        {texts.devices}{' '}
        <span class="quiet">
          {devices.length} / {holders.length}
        </span>
      </summary>
      {holders.length > DEVICES_MAX ? <p class="quiet">{texts.devicesMax}</p> : null}
      <ul class="chips">
        {holders.map(({ device, packets }) => (
          <li key={device}>
            <button type="button" aria-pressed={devices.includes(device)} onClick={() => toggle(device)}>
              {device} {packets === null ? null : <span class="quiet mono">{countText(packets)}</span>}
            </button>
          </li>
        ))}
      </ul>
    </details>
  )
}

function Found({ packets }: { readonly packets: readonly Packet[] }) {
  const { inside: texts } = TEXTS
  const { zone } = useSurroundings()
  const [chosen, setChosen] = useState(0)
  const packet = packets[chosen]
  if (packets.length === 0) return <Empty>{texts.empty}</Empty>
  return (
    <>
      <DataTable
        label={texts.title}
        columns={texts.columns}
        numbers={[5]}
        frameClass="packets"
        onKeyDown={(event) => moveChoice(event, chosen, packets.length, setChosen)}
      >
        {packets.map((row, index) => {
          const { source, destination, protocol } = summaryOf(row)
          return (
            <tr
              key={index}
              aria-current={index === chosen ? 'true' : undefined}
              onClick={() => setChosen(index)}
            >
              <td class="mono">{instantText(row.ns, zone)}</td>
              <td>{row.device}</td>
              <td class="mono">{source}</td>
              <td class="mono">{destination}</td>
              <td>{protocol}</td>
              <td class="number">{row.length}</td>
            </tr>
          )
        })}
      </DataTable>
      {packet === undefined ? null : <PacketBytes packet={packet} />}
    </>
  )
}

function moveChoice(
  event: KeyboardEvent,
  chosen: number,
  count: number,
  choose: (index: number) => void,
): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  if (step === 0) return
  event.preventDefault()
  const next = Math.min(count - 1, Math.max(0, chosen + step))
  choose(next)
  ;(event.currentTarget as HTMLElement)
    .querySelectorAll('tbody tr')
    [next]?.scrollIntoView({ block: 'nearest' })
}

function PacketBytes({ packet }: { readonly packet: Packet }) {
  const { inside: texts } = TEXTS
  return (
    <section class="packet-bytes" aria-label={texts.bytes}>
      <h2>
        {texts.bytes} <Value text={String(packet.ns)} />
      </h2>
      {packet.bytes.length === packet.length ? null : (
        <p class="quiet">
          {countText(packet.bytes.length)} {texts.cut} {countText(packet.length)}.
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <pre tabIndex={0}>{hexLines(packet.bytes).join('\n')}</pre>
    </section>
  )
}

function Wireshark({ pairs }: { readonly pairs: Pairs }) {
  const { inside: texts } = TEXTS
  const { session } = useSurroundings()
  const line = wiresharkLine(pairs, session)
  return (
    <details class="wireshark">
      <summary>{texts.wireshark}</summary>
      <p>{texts.wiresharkText}</p>
      <pre class="wrapped">{line}</pre>
      <CopyButton text={() => line} label={TEXTS.copy} />
    </details>
  )
}
