/** What the download would deliver, as counted by the devices while the user types. */
import { bytesText, countText } from '../../shared/base/amounts.ts'
import { Problem, type Schemas } from '../base/ask-gateway.ts'
import type { Asked } from '../base/asked.ts'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { MissingDevices } from './missing-devices.tsx'

interface EstimateViewProps {
  readonly estimate: Asked<Schemas['FleetEstimate']>
  readonly hasRange: boolean
}

export function EstimateView({ estimate, hasRange }: EstimateViewProps) {
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
      </p>
      <ul>
        {value.devices.map((device) => (
          <li key={device.device}>
            <span>{device.device}</span>
            {'error' in device ? (
              <span class="bad">{device.error.detail ?? texts.notWithin}</span>
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
      <MissingDevices
        missing={value.devices.flatMap((device) => ('error' in device ? [device.device] : []))}
        devices={value.devices}
      />
    </section>
  )
}

function Amount({ packets, bytes, exact, devices }: Schemas['FleetEstimate']) {
  const { download: texts } = TEXTS
  if (packets === null || bytes === null) {
    const isUntold = devices.every((device) => 'error' in device)
    return <span class="quiet">{isUntold ? texts.untold : texts.uncounted}</span>
  }
  return (
    <>
      <span class="quiet">
        {texts.estimate} {exact ? texts.exactly : texts.atMost}
      </span>
      <strong data-packets={packets}>
        {countText(packets)} {texts.packets}
      </strong>
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
        {name}
      </button>
    </p>
  )
}
