/** What the download would deliver, as counted by the devices while the user types. */
import { bytesText, countText, packetsText } from '../../shared/base/amounts.ts'
import { Problem, type Schemas } from '../base/ask-gateway.ts'
import type { Asked } from '../base/asked.ts'
import { labelOf } from '../parameter-labels.ts'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { ExactCount } from './exact-count.tsx'
import { MissingDevices } from './missing-devices.tsx'

interface EstimateViewProps {
  readonly estimate: Asked<Schemas['FleetEstimate']>
  readonly hasRange: boolean
  /** Whether the download has filters, which an estimate that is not exact does not apply. */
  readonly isFiltered: boolean
  /** The query of the estimate. */
  readonly query: string
}

/** More devices are folded, so that the buttons below stay visible. */
const UNFOLDED_MAX = 4

type Estimated = Schemas['FleetEstimate']['devices'][number]

/** Devices that failed are always visible, and come first. */
function DeviceList({ devices }: { readonly devices: readonly Estimated[] }) {
  const failed = devices.filter((device) => 'error' in device)
  const counted = devices.filter((device) => !('error' in device))
  return (
    <>
      <DeviceAmounts devices={failed} />
      {counted.length <= UNFOLDED_MAX ? (
        <DeviceAmounts devices={counted} />
      ) : (
        <details>
          <summary>{TEXTS.download.byDevice(counted.length)}</summary>
          <DeviceAmounts devices={counted} />
        </details>
      )}
    </>
  )
}

function DeviceAmounts({ devices }: { readonly devices: readonly Estimated[] }) {
  if (devices.length === 0) return null
  return (
    <ul>
      {devices.map((device) => (
        <li key={device.device}>
          <span>{device.device}</span>
          {'error' in device ? (
            <span class="bad">{device.error.detail ?? TEXTS.download.notWithin}</span>
          ) : (
            <span class="mono">
              {device.packets === null || device.bytes === null
                ? TEXTS.none
                : `${countText(device.packets)} · ${bytesText(device.bytes)}`}
            </span>
          )}
        </li>
      ))}
    </ul>
  )
}

export function EstimateView({ estimate, hasRange, isFiltered, query }: EstimateViewProps) {
  const { download: texts } = TEXTS
  const { value, failure, isAsking, again } = estimate
  if (!hasRange) return <p class="estimate quiet">{texts.selectFirst}</p>
  if (failure instanceof Problem && failure.param !== undefined) return <WrongField name={failure.param} />
  if (failure !== undefined)
    return (
      <>
        <Failure failure={failure} again={again} />
        {failure instanceof Problem ? (
          <MissingDevices missing={failure.devices} devices={value?.devices ?? []} />
        ) : null}
      </>
    )
  if (value === undefined)
    return (
      <p class="estimate quiet" role="status">
        {texts.checking}
      </p>
    )
  return (
    <section class="estimate" aria-label={texts.estimate} aria-busy={isAsking}>
      <p>
        <Amount {...value} />
        <span class="quiet">{isAsking ? texts.checking : texts.beforeCompression}</span>
        {isFiltered && !value.exact && value.packets !== null ? (
          <span class="warning">{texts.withoutFilters}</span>
        ) : null}
      </p>
      {mayHaveCopies(value, query) ? <p class="quiet">{texts.copies}</p> : null}
      {value.exact || value.devices.every((device) => 'error' in device) ? null : (
        <ExactCount key={query} query={query} />
      )}
      <DeviceList devices={value.devices} />
      <MissingDevices
        missing={value.devices.flatMap((device) => ('error' in device ? [device.device] : []))}
        devices={value.devices}
      />
    </section>
  )
}

/** Whether several devices deliver packets, and copies of a packet are not dropped. */
function mayHaveCopies({ devices }: Schemas['FleetEstimate'], query: string): boolean {
  const delivering = devices.filter((device) => !('error' in device) && device.packets !== '0')
  return delivering.length > 1 && !new URLSearchParams(query).has('Dedup')
}

function Amount({ packets, bytes, exact, devices }: Schemas['FleetEstimate']) {
  const { download: texts } = TEXTS
  if (packets === null || bytes === null) {
    const isUntold = devices.every((device) => 'error' in device)
    return <span class="quiet">{isUntold ? texts.untold : texts.uncounted}</span>
  }
  const answered = devices.filter((device) => !('error' in device)).length
  const isWhole = answered === devices.length
  return (
    <>
      <span class="quiet">
        {texts.estimate}{' '}
        {isWhole ? (exact ? texts.exactly : texts.atMost) : texts.ofAnswered(answered, devices.length)}
      </span>
      <strong data-packets={packets}>{packetsText(packets)}</strong>
      <strong data-bytes={bytes} title={`${countText(bytes)} B`}>
        {bytesText(bytes)}
      </strong>
    </>
  )
}

/** The error is shown at the field, which may be far below. */
function WrongField({ name }: { readonly name: string }) {
  return (
    <p class="estimate">
      <span class="bad">{TEXTS.download.wrongField}</span>
      <button
        type="button"
        class="plain"
        onClick={() => document.querySelector<HTMLElement>(`[id="parameter-${name}"]`)?.focus()}
      >
        {labelOf(name)}
      </button>
    </p>
  )
}
