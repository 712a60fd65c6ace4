/** A device as a row of the fleet. */
import { bitRateText, countText } from '../base/amounts.ts'
import { durationText, instantText } from '../base/instants.ts'
import { changed, currentState, formatPageState, showState } from '../base/page-url.ts'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { TEXTS } from '../texts.ts'
import type { ControlRequest } from './capture-control.tsx'
import type { CaptureFacts, DeviceReport } from './device-state.ts'

interface DeviceRowProps {
  readonly device: DeviceReport
  readonly facts: CaptureFacts | undefined
  readonly rowIndex: number
  readonly onControl: (request: ControlRequest) => void
}

export function DeviceRow({ device, facts, rowIndex }: DeviceRowProps) {
  const { zone } = useSurroundings()
  const { name, oldestPacketNs, clockOffsetNs, slotsUsed, slotsTotal, waiting } = device
  const details = changed(currentState(), { device: name })
  return (
    <tr aria-rowindex={rowIndex} data-device={name}>
      <th scope="row">
        <a
          href={formatPageState(details)}
          onClick={(event) => {
            event.preventDefault()
            showState(details, { isStep: true })
          }}
        >
          {name}
        </a>
      </th>
      <td>
        <Health device={device} />
      </td>
      <td>
        {facts === undefined ? (
          <span class="quiet">{TEXTS.none}</span>
        ) : (
          <span
            class={facts.state === 'running' ? 'good' : facts.state === 'error' ? 'bad' : 'quiet'}
            title={facts.message}
          >
            {facts.state}
          </span>
        )}{' '}
        <span class="quiet">{facts?.state === 'running' ? facts.name : ''}</span>
      </td>
      <td class="number">
        {facts === undefined ? (
          TEXTS.none
        ) : (
          <Value text={String(facts.bitsPerSecond)} shown={bitRateText(facts.bitsPerSecond)} />
        )}
      </td>
      <td class={`number ${facts !== undefined && facts.drops !== '0' ? 'bad' : ''}`}>
        {facts === undefined ? TEXTS.none : countText(facts.drops)}
      </td>
      <td class="number">
        {clockOffsetNs === null ? (
          TEXTS.none
        ) : (
          <Value text={clockOffsetNs} shown={durationText(BigInt(clockOffsetNs))} />
        )}
      </td>
      <td class="number">
        {oldestPacketNs === null || oldestPacketNs === '0' ? (
          TEXTS.none
        ) : (
          <Value text={oldestPacketNs} shown={instantText(BigInt(oldestPacketNs), zone, 0)} />
        )}
      </td>
      <td class="number">{facts?.freeGb === undefined ? TEXTS.none : `${facts.freeGb.toFixed(0)} GB`}</td>
      <td class="number">
        {slotsUsed ?? TEXTS.none}/{slotsTotal}
      </td>
      <td class="number">{waiting ?? TEXTS.none}</td>
    </tr>
  )
}

/** Told by a word beside the colour. */
export function Health({ device }: { readonly device: DeviceReport }) {
  const { reachable, error } = device
  if (reachable === null) return <span class="state quiet">{TEXTS.fleet.unknown}</span>
  return (
    <span class={`state ${reachable ? 'good' : 'bad'}`} title={error?.detail}>
      {reachable ? TEXTS.fleet.up : TEXTS.fleet.down}
    </span>
  )
}
