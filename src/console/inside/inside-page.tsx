/** The first packets of the selection as a table, and the bytes of one of them. */
import { useEffect, useState } from 'preact/hooks'
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
import { askHolders, askPackets, type Estimated, type FirstPackets, type Holder } from './first-packets.ts'
import { DISSECTED_SIZE, type LookSize, TABLE_SIZE } from './look-parameters.ts'
import { summaryOf } from './packet-summary.ts'
import { hexLines, type Packet } from './pcap-packets.ts'
import { PivotLinks } from './pivot-links.tsx'

export function InsidePage() {
  const { inside: texts } = TEXTS
  const { values } = usePageState()
  const { dissector } = useSurroundings().session
  const size = dissector === null ? TABLE_SIZE : DISSECTED_SIZE
  const pairs = downloadPairs(values)
  const hasRange = values.TSBegin !== undefined && values.TSEnd !== undefined
  const key = hasRange ? queryText(pairs) : undefined
  const asked = useAsked((signal) => askHolders(pairs, signal), { key })
  const { holders, failures } = asked.value ?? NOBODY
  const devices = shownDevices(values['inside-devices'], holders)
  const isWhole = values['inside-devices'] !== undefined || values['inside-all'] === '1'
  const [soFar, setSoFar] = useState<FirstPackets | undefined>()
  const readKey = asked.value === undefined ? undefined : `${key} ${isWhole} ${devices.join(',')}`
  useEffect(() => setSoFar(undefined), [readKey])
  const found = useAsked(
    (signal) => askPackets(pairs, devices, { size, isWhole, signal, onRead: setSoFar }),
    {
      key: readKey,
    },
  )
  // What was read before stays until the first answer.
  const read = (found.isAsking ? soFar : undefined) ?? found.value
  const failure = asked.failure ?? found.failure
  const isReading = read === undefined || found.isAsking
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
      {hasRange && (found.isAsking || found.value === undefined) && failure === undefined ? (
        <Waiting text={texts.loading} />
      ) : null}
      <Failure failure={failure} again={asked.failure === undefined ? found.again : asked.again} />
      <Silent text={texts.silent} failures={failures} />
      <Silent text={texts.brokeOff} failures={read?.failures} again={found.again} />
      <HolderChoice holders={holders} devices={devices} counts={read?.counts ?? NO_COUNTS} size={size} />
      {read === undefined ? null : <Progress read={read} devices={devices} isAsking={found.isAsking} />}
      {isFound(read) || (devices.length > 0 && failure === undefined && isReading) ? (
        <Found read={read} isComplete={!found.isAsking} />
      ) : null}
      {hasRange ? <Wireshark pairs={pairs} /> : null}
    </section>
  )
}

function isFound(read: FirstPackets | undefined): boolean {
  return read !== undefined && read.packets.length > 0
}

const NOBODY: Estimated = { holders: [], failures: new Map() }
const NO_COUNTS: ReadonlyMap<string, number> = new Map()

interface ProgressProps {
  readonly read: FirstPackets
  readonly devices: readonly string[]
  readonly isAsking: boolean
}

/** How many devices have been read, and how to read the others. Only if none has a packet, there is none. */
function Progress({ read: { packets, counts, failures }, devices, isAsking }: ProgressProps) {
  const { inside: texts } = TEXTS
  if (devices.length === 0) return isAsking || failures.size > 0 ? null : <Empty>{texts.nothingThere}</Empty>
  const done = devices.filter((device) => counts.has(device) || failures.has(device)).length
  const left = devices.length - done
  if (left === 0 && packets.length === 0 && !isAsking) return <Empty>{texts.empty(counts.size)}</Empty>
  if (devices.length === 1) return null
  return (
    <p class="controls" role="status">
      <span class="quiet">{texts.readOf(done, devices.length)}</span>
      {left === 0 || isAsking ? null : (
        <button type="button" onClick={() => showState(changed(currentState(), { 'inside-all': '1' }))}>
          {texts.readOthers(left)}
        </button>
      )}
    </p>
  )
}

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

/** The selected ones, or all. */
function shownDevices(chosen: string | undefined, holders: readonly Holder[]): readonly string[] {
  const names = holders.map(({ device }) => device)
  return (chosen?.split(',') ?? names).filter((name) => names.includes(name))
}

interface HolderChoiceProps {
  readonly holders: readonly Holder[]
  readonly devices: readonly string[]
  /** Packets of each device that was read. */
  readonly counts: ReadonlyMap<string, number>
  readonly size: LookSize
}

/** Selects the devices to read. */
function HolderChoice({ holders, devices, counts, size }: HolderChoiceProps) {
  const { inside: texts } = TEXTS
  if (holders.length < 2) return null
  const toggle = (name: string): void => {
    const next = devices.includes(name) ? devices.filter((other) => other !== name) : [...devices, name]
    if (next.length === 0) return
    showState(changed(currentState(), { 'inside-devices': next.join(',') }))
  }
  return (
    <details class="holders">
      <summary>
        {texts.devices}{' '}
        <span class="quiet">
          {devices.length} / {holders.length}
        </span>
      </summary>
      <ul class="chips">
        {holders.map((holder) => (
          <li key={holder.device}>
            <button
              type="button"
              aria-pressed={devices.includes(holder.device)}
              onClick={() => toggle(holder.device)}
            >
              {holder.device}{' '}
              <span class="quiet mono">{passedText(holder, counts.get(holder.device), size)}</span>
            </button>
          </li>
        ))}
      </ul>
    </details>
  )
}

/** Packets that pass the filters: a count of packets before them would promise too much. */
function passedText({ packets, exact }: Holder, count: number | undefined, { packetsMax }: LookSize): string {
  if (exact && packets !== null) return countText(packets)
  if (count === undefined) return ''
  return count < packetsMax ? countText(count) : TEXTS.inside.orMore(count)
}

interface FoundProps {
  /** undefined: none has arrived yet. */
  readonly read: FirstPackets | undefined
  readonly isComplete: boolean
}

/**
 * By Wireshark if the gateway has it, which starts while the packets are on their way; the table needs nothing more
 * than the page.
 */
function Found({ read, isComplete }: FoundProps) {
  const { dissector } = useSurroundings().session
  const dissected = usePart(dissector === null ? undefined : loadDissected)
  const table =
    read === undefined ? null : <PacketTable packets={read.packets.slice(0, TABLE_SIZE.packetsMax)} />
  return (
    <>
      {read === undefined ? null : <NextPackets read={read} />}
      <Failure failure={dissected.failure} />
      {dissector === null || dissected.Part === undefined ? (
        table
      ) : (
        <dissected.Part build={dissector} packets={isComplete ? read?.packets : undefined}>
          {table}
        </dissected.Part>
      )}
    </>
  )
}

function NextPackets({ read: { packets, isCut } }: { readonly read: FirstPackets }) {
  const { inside: texts } = TEXTS
  const last = packets.at(-1)
  if (!isCut || last === undefined) return null
  return (
    <p class="controls">
      <span class="quiet">{texts.firstOf(countText(packets.length))}</span>
      <button
        type="button"
        onClick={() => showState(changed(currentState(), { TSBegin: String(last.ns) }), { isStep: true })}
      >
        {texts.loadNext}
      </button>
    </p>
  )
}

const loadDissected = async () => (await import('../dissection/dissected-packets.tsx')).DissectedPackets

/** A component that few views need, and that the page loads when it is first shown. */
function usePart<Part>(load: (() => Promise<Part>) | undefined) {
  const [part, setPart] = useState<{ readonly Part?: Part; readonly failure?: unknown }>({})
  useEffect(() => {
    load?.().then(
      (Part) => setPart({ Part }),
      (failure: unknown) => setPart({ failure }),
    )
  }, [])
  return part
}

function PacketTable({ packets }: { readonly packets: readonly Packet[] }) {
  const { inside: texts } = TEXTS
  const { zone } = useSurroundings()
  const [chosen, setChosen] = useState(0)
  const packet = packets[chosen]
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
  const { zone } = useSurroundings()
  return (
    <section class="packet-bytes" aria-label={texts.bytes}>
      <h2>
        {texts.bytes} <Value text={String(packet.ns)} shown={instantText(packet.ns, zone)} />
      </h2>
      <PivotLinks packet={packet} />
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
