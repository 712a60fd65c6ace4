/** All devices by site, the ones that are down first seen: of a thousand only the rows in sight are in the page. */
import { useMemo, useRef, useState } from 'preact/hooks'
import { type DeviceReport, useDevices } from '../base/devices.ts'
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { TableHead, tableLabel } from '../parts/data-table.tsx'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { useSeenRows } from '../parts/virtual-rows.ts'
import { TEXTS } from '../texts.ts'
import { CaptureControl, type ControlRequest } from './capture-control.tsx'
import { ChoiceBar, ChoiceBox, type DeviceChoice, useDeviceChoice } from './device-choice.tsx'
import { DeviceDetails } from './device-details.tsx'
import { DeviceRow } from './device-row.tsx'

const DEVICES_EVERY_MS = 2_000
/** As --row of the tokens. */
const ROW_PX = 30

type Row =
  | { readonly site: string; readonly up: number; readonly names: readonly string[] }
  | { readonly device: DeviceReport }

export function FleetPage() {
  const { values } = usePageState()
  const [request, setRequest] = useState<ControlRequest | undefined>()
  const search = values.search ?? ''
  const devices = useDevices(DEVICES_EVERY_MS)
  const rows = useMemo(() => rowsOf(devices.value ?? [], search), [devices.value, search])
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
        <DeviceTable rows={rows} choice={choice} />
      </section>
      {opened === undefined ? null : <DeviceDetails device={opened} onControl={setRequest} />}
      {request === undefined ? null : (
        <CaptureControl request={request} onClose={() => setRequest(undefined)} />
      )}
    </>
  )
}

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
}

function DeviceTable({ rows, choice }: DeviceTableProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const seen = useSeenRows(scroller, () => ROW_PX, rows.length)
  const shown = rows.slice(seen.first, seen.last)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section class="table-scroller" ref={scroller} tabIndex={0} aria-label={tableLabel(TEXTS.fleet.title)}>
      <table aria-rowcount={rows.length + 1} class="fleet-table">
        <TableHead columns={TEXTS.fleet.columns} />
        <tbody>
          <Spacer rows={seen.first} />
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
                choice={choice}
              />
            ),
          )}
          <Spacer rows={rows.length - seen.last} />
        </tbody>
      </table>
    </section>
  )
}

/** As high as the rows that are not in the page. */
function Spacer({ rows }: { readonly rows: number }) {
  if (rows <= 0) return null
  return (
    <tr class="spacer">
      <td colSpan={TEXTS.fleet.columns.length} style={{ height: `${rows * ROW_PX}px` }} />
    </tr>
  )
}

function rowsOf(devices: readonly DeviceReport[], search: string): readonly Row[] {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  const found = devices.filter((device) => words.every((word) => searchText(device).includes(word)))
  const bySite = Map.groupBy(found, ({ site }) => site ?? TEXTS.fleet.noSite)
  return [...bySite]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([site, list]) => [
      {
        site,
        up: list.filter(({ reachable }) => reachable === true).length,
        names: list.map(({ name }) => name),
      },
      ...list.map((device) => ({ device })),
    ])
}

function searchText({ name, site, reachable }: DeviceReport): string {
  return `${name} ${site ?? TEXTS.fleet.noSite} ${healthWord(reachable)}`.toLowerCase()
}

export function healthWord(reachable: boolean | null): string {
  if (reachable === null) return TEXTS.fleet.unknown
  return reachable ? TEXTS.fleet.up : TEXTS.fleet.down
}
