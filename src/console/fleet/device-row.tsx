/** A device as a row of the fleet. */
import { bitRateText, bytesText, countText, percentText } from '../../shared/base/amounts.ts'
import type { DeviceReport } from '../base/devices.ts'
import { durationText, instantText, nowNs } from '../base/instants.ts'
import { changed, currentState, formatPageState, showState } from '../base/page-url.ts'
import { useSurroundings } from '../parts/context.ts'
import { CopyBeside, Value } from '../parts/copied.tsx'
import { TEXTS } from '../texts.ts'
import { ChoiceBox, type DeviceChoice } from './device-choice.tsx'

interface DeviceRowProps {
  readonly device: DeviceReport
  readonly rowIndex: number
  /** Whether its details are open. */
  readonly isOpened: boolean
  /** undefined: the user may not control captures. */
  readonly choice: DeviceChoice | undefined
  /** Packets that its capture loses per second; undefined: not known yet. */
  readonly dropsPerS: number | undefined
  /** Whether its site is shown beside its name. False if the rows are grouped by site. */
  readonly hasSite: boolean
}

export function DeviceRow({ device, rowIndex, isOpened, choice, dropsPerS, hasSite }: DeviceRowProps) {
  const { zone } = useSurroundings()
  const { name, oldestPacketNs, clockOffsetNs, slotsUsed, slotsTotal, slotsLimit } = device
  const { waiting, storeFreeBytes, kind, lacks } = device
  const details = changed(currentState(), { device: name })
  return (
    <tr aria-rowindex={rowIndex} data-device={name} aria-current={isOpened ? 'true' : undefined}>
      <th scope="row">
        <ChoiceBox choice={choice} label={name} names={[name]} />
        <a
          href={formatPageState(details)}
          aria-current={isOpened ? 'true' : undefined}
          onClick={(event) => {
            event.preventDefault()
            showState(details, { isStep: true })
          }}
        >
          {name}
        </a>{' '}
        <CopyBeside text={name} isStop={false} />
        {hasSite ? <span class="quiet">{device.site}</span> : null}
      </th>
      <td>
        <Health device={device} />{' '}
        {kind === null || (kind === 'capfleet' && lacks.length === 0) ? null : (
          <span class={lacks.length === 0 ? 'quiet' : 'warning'} title={lacksText(device)}>
            {kind}
          </span>
        )}
      </td>
      <CaptureCells device={device} dropsPerS={dropsPerS} />
      <td class="number">
        {clockOffsetNs === null ? (
          TEXTS.none
        ) : (
          <Value text={clockOffsetNs} shown={durationText(BigInt(clockOffsetNs))} isStop={false} />
        )}
      </td>
      <td class="number">
        {oldestPacketNs === null || oldestPacketNs === '0' ? (
          TEXTS.none
        ) : (
          <Value text={oldestPacketNs} shown={instantText(BigInt(oldestPacketNs), zone, 0)} isStop={false} />
        )}
      </td>
      <td class="number">{keptText(device)}</td>
      <td class="number">
        {storeFreeBytes === null ? (
          TEXTS.none
        ) : (
          <Value text={String(storeFreeBytes)} shown={freeText(device)} isStop={false} />
        )}
      </td>
      <td class="number">
        {slotsUsed ?? TEXTS.none}/{slotsLimit ?? slotsTotal}
      </td>
      <td class="number">{waiting ?? TEXTS.none}</td>
    </tr>
  )
}

/** How far back the packets of the device reach. */
export function keptText({ oldestPacketNs }: Pick<DeviceReport, 'oldestPacketNs'>): string {
  if (oldestPacketNs === null || oldestPacketNs === '0') return TEXTS.none
  return durationText(nowNs() - BigInt(oldestPacketNs))
}

/** "310 GiB of 2.00 TiB" */
export function freeText({
  storeFreeBytes,
  storeBytes,
}: Pick<DeviceReport, 'storeFreeBytes' | 'storeBytes'>): string {
  if (storeFreeBytes === null) return TEXTS.none
  const free = bytesText(storeFreeBytes)
  return storeBytes === null ? free : `${free} ${TEXTS.fleet.of} ${bytesText(storeBytes)}`
}

/** One line for each path that the device lacks. */
export function lacksText({ lacks }: DeviceReport): string | undefined {
  return lacks.length === 0 ? undefined : lacks.map(({ detail }) => detail).join('\n')
}

/** The state in words, not only as a colour. */
export function Health({ device }: { readonly device: DeviceReport }) {
  const { reachable, error } = device
  const colour = reachable === null ? 'quiet' : reachable ? 'good' : 'bad'
  return (
    <span class={`state ${colour}`} title={error?.detail}>
      {healthWord(reachable)}
    </span>
  )
}

export function healthWord(reachable: boolean | null): string {
  if (reachable === null) return TEXTS.fleet.unknown
  return reachable ? TEXTS.fleet.up : TEXTS.fleet.down
}

interface CaptureCellsProps {
  readonly device: DeviceReport
  readonly dropsPerS: number | undefined
}

function CaptureCells({ device: { capture }, dropsPerS = 0 }: CaptureCellsProps) {
  const { state = null, name = null, gbps = null, mpps = null, drops = null } = capture ?? {}
  const bitsPerSecond = Math.round((gbps ?? 0) * 1_000_000_000)
  const colour = state === 'running' ? 'good' : state === 'error' ? 'bad' : 'quiet'
  return (
    <>
      <td>
        <span class={colour}>{state ?? TEXTS.none}</span>{' '}
        {name === null ? null : <Value text={name} hasSign isStop={false} />}
      </td>
      <td class="number">
        {gbps === null ? (
          TEXTS.none
        ) : (
          <Value text={String(bitsPerSecond)} shown={bitRateText(bitsPerSecond)} isStop={false} />
        )}
      </td>
      <td class={`number ${(drops ?? 0) > 0 ? 'bad' : ''}`}>
        {drops === null ? TEXTS.none : countText(drops)}
        {dropsPerS === 0 ? null : (
          <span title={lostShare(dropsPerS, mpps)}>
            {' '}
            {TEXTS.fleet.perSecond(countText(Math.ceil(dropsPerS)))}
          </span>
        )}
      </td>
    </>
  )
}

/** "0.3 % of the packets", if the device reports how many it captures. */
function lostShare(dropsPerS: number, mpps: number | null): string | undefined {
  if (mpps === null) return undefined
  return TEXTS.fleet.ofPackets(percentText(dropsPerS / (dropsPerS + mpps * 1_000_000)))
}
