/** All devices by site: of a thousand, only the visible rows are in the DOM. */
import { useMemo, useRef, useState } from 'preact/hooks'
import { type DeviceReport, useDevices } from '../base/devices.ts'
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { TableHead, tableLabel } from '../parts/data-table.tsx'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { useSeenRows } from '../parts/virtual-rows.ts'
import { TEXTS } from '../texts.ts'
import { UploadButton } from '../upload/upload-button.tsx'
import { CaptureControl, type ControlRequest } from './capture-control.tsx'
import { ChoiceBar, ChoiceBox, type DeviceChoice, useDeviceChoice } from './device-choice.tsx'
import { DeviceDetails } from './device-details.tsx'
import { nextSort, readSort, SORT_KEYS, type Sort, sorted } from './device-order.ts'
import { DeviceRow, healthWord } from './device-row.tsx'
import { type DropCounts, useDropCounts } from './drop-rates.ts'

const DEVICES_EVERY_MS = 2_000
/** Same as --row of the tokens. */
const ROW_PX = 30
/** Same as --card of the tokens: on a phone a row is a card. */
const CARD_PX = 64
const PHONE = '(max-width: 640px)'

/** Starting at "Rate". */
const NUMBERS = TEXTS.fleet.columns.flatMap((_name, index) => (index < 3 ? [] : [index]))

type Row =
  | { readonly site: string; readonly up: number; readonly names: readonly string[] }
  | { readonly device: DeviceReport }

export function FleetPage() {
  const { values } = usePageState()
  const [request, setRequest] = useState<ControlRequest | undefined>()
  const search = values.search ?? ''
  const devices = useDevices(DEVICES_EVERY_MS)
  const isDownFirst = values.sort === 'down'
  const sort = readSort(values.sort)
  const drops = useDropCounts(devices.value ?? NO_DEVICES)
  const rows = useMemo(
    () => rowsOf(devices.value ?? NO_DEVICES, { search, isDownFirst, sort: readSort(values.sort) }),
    [devices.value, search, values.sort],
  )
  const choice = useDeviceChoice()
  const opened = devices.value?.find(({ name }) => name === values.device)
  if (devices.value === undefined)
    return devices.failure === undefined ? (
      <Waiting />
    ) : (
      <Failure failure={devices.failure} again={devices.again} />
    )
  return (
    <>
      <section class="fleet" aria-labelledby="fleet-title">
        <div class="controls">
          <h1 id="fleet-title">{TEXTS.fleet.title}</h1>
          <Totals devices={devices.value} />
          <input
            type="search"
            aria-label={TEXTS.fleet.search}
            placeholder={TEXTS.fleet.search}
            value={search}
            onInput={(event) =>
              showState(changed(currentState(), { search: event.currentTarget.value || undefined }))
            }
          />
          <button
            type="button"
            aria-pressed={isDownFirst}
            onClick={() => showState(changed(currentState(), { sort: isDownFirst ? undefined : 'down' }))}
          >
            {TEXTS.fleet.downFirst}
          </button>
          <UploadButton takesDrops />
        </div>
        <Failure failure={devices.failure} />
        {devices.value.length === 0 ? <Empty>{TEXTS.fleet.noDevices}</Empty> : null}
        {devices.value.length > 0 && rows.length === 0 ? <Empty>{TEXTS.fleet.noneFound}</Empty> : null}
        {choice === undefined ? null : (
          <ChoiceBar
            choice={choice}
            shown={rows.flatMap((row) => ('device' in row ? [row.device.name] : []))}
            onControl={setRequest}
          />
        )}
        <DeviceTable {...{ rows, choice, sort, drops }} opened={opened?.name} />
      </section>
      {opened === undefined ? null : (
        <DeviceDetails key={opened.name} device={opened} onControl={setRequest} />
      )}
      {request === undefined ? null : (
        <CaptureControl request={request} onClose={() => setRequest(undefined)} />
      )}
    </>
  )
}

const NO_DEVICES: readonly DeviceReport[] = []

function Totals({ devices }: { readonly devices: readonly DeviceReport[] }) {
  const { fleet: texts } = TEXTS
  const down = devices.filter(({ reachable }) => reachable === false).length
  const unknown = devices.filter(({ reachable }) => reachable === null).length
  return (
    <p class="totals" role="status">
      <span class="mono">{devices.length}</span> {texts.devices}{' '}
      {down === 0 ? (
        unknown === 0 ? (
          <span class="good">{texts.allUp}</span>
        ) : null
      ) : (
        <span class="bad">
          {down} {texts.down}
        </span>
      )}{' '}
      {unknown === 0 ? null : (
        <span class="quiet">
          {unknown} {texts.unknown}
        </span>
      )}
    </p>
  )
}

interface DeviceTableProps {
  readonly rows: readonly Row[]
  readonly choice: DeviceChoice | undefined
  /** undefined: by site. */
  readonly sort: Sort | undefined
  readonly drops: DropCounts
  /** The device whose details are open. */
  readonly opened: string | undefined
}

function DeviceTable({ rows, choice, sort, drops, opened }: DeviceTableProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const seen = useSeenRows(scroller, () => (matchMedia(PHONE).matches ? CARD_PX : ROW_PX), rows.length)
  const shown = rows.slice(seen.first, seen.last)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section class="table-scroller" ref={scroller} tabIndex={0} aria-label={tableLabel(TEXTS.fleet.title)}>
      <table aria-rowcount={rows.length + 1} class="fleet-table">
        <TableHead
          columns={TEXTS.fleet.columns}
          numbers={NUMBERS}
          sort={sort && { index: SORT_KEYS.indexOf(sort.key), isDescending: sort.isDescending }}
          onSort={(index) => {
            const key = SORT_KEYS[index]
            if (key !== undefined) showState(changed(currentState(), { sort: nextSort(sort, key) }))
          }}
        />
        <tbody>
          <Spacer heightPx={seen.first * seen.rowPx} />
          {shown.map((row, index) =>
            'site' in row ? (
              <tr key={`site ${row.site}`} class="site" aria-rowindex={seen.first + index + 2}>
                <th scope="rowgroup" colSpan={TEXTS.fleet.columns.length}>
                  <ChoiceBox choice={choice} label={row.site} names={row.names} />
                  {row.site} <span class="quiet">{TEXTS.fleet.upOf(row.up, row.names.length)}</span>
                </th>
              </tr>
            ) : (
              <DeviceRow
                key={row.device.name}
                device={row.device}
                rowIndex={seen.first + index + 2}
                isOpened={row.device.name === opened}
                choice={choice}
                dropsPerS={drops.get(row.device.name)?.perS}
                hasSite={sort !== undefined}
              />
            ),
          )}
          <Spacer heightPx={(rows.length - seen.last) * seen.rowPx} />
        </tbody>
      </table>
    </section>
  )
}

/** As high as the rows that are not in the DOM. */
function Spacer({ heightPx }: { readonly heightPx: number }) {
  if (heightPx <= 0) return null
  return (
    <tr class="spacer">
      <td colSpan={TEXTS.fleet.columns.length} style={{ height: `${heightPx}px` }} />
    </tr>
  )
}

interface Wanted {
  readonly search: string
  readonly isDownFirst: boolean
  /** undefined: by site. */
  readonly sort: Sort | undefined
}

function rowsOf(devices: readonly DeviceReport[], { search, isDownFirst, sort }: Wanted): readonly Row[] {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  const found = devices.filter((device) => words.every((word) => searchText(device).includes(word)))
  if (sort !== undefined) return sorted(found, sort).map((device) => ({ device }))
  // The sort is stable, and a site is placed where its first device is.
  const bySite = isDownFirst
    ? bySiteName(found).toSorted((a, b) => healthRank(a) - healthRank(b))
    : bySiteName(found)
  return [...Map.groupBy(bySite, siteOf)].flatMap(([site, list]) => [
    {
      site,
      up: list.filter(({ reachable }) => reachable === true).length,
      names: list.map(({ name }) => name),
    },
    ...list.map((device) => ({ device })),
  ])
}

function bySiteName(devices: readonly DeviceReport[]): readonly DeviceReport[] {
  return devices.toSorted((a, b) => (siteOf(a) === siteOf(b) ? 0 : siteOf(a) < siteOf(b) ? -1 : 1))
}

function siteOf({ site }: DeviceReport): string {
  return site ?? TEXTS.fleet.noSite
}

/** Down, not known yet, up. */
function healthRank({ reachable }: DeviceReport): number {
  return reachable === null ? 1 : reachable ? 2 : 0
}

function searchText(device: DeviceReport): string {
  return `${device.name} ${siteOf(device)} ${healthWord(device.reachable)}`.toLowerCase()
}
