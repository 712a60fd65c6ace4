/** The names beside the lanes; a tick chooses a device for the download. */
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import type { SeenRows } from '../parts/virtual-rows.ts'
import { TEXTS } from '../texts.ts'
import { AXIS_PX } from './draw-lanes.ts'

interface LaneNamesProps {
  readonly names: readonly string[]
  readonly seen: SeenRows
}

export function LaneNames({ names, seen }: LaneNamesProps) {
  const chosen = chosenDevices(usePageState().values)
  const toggle = (name: string): void => {
    const next = chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name]
    showState(changed(currentState(), { Device: next.length === 0 ? undefined : next.join(',') }))
  }
  return (
    <ul class="lane-names" aria-label={TEXTS.download.devices}>
      {names.slice(seen.first, seen.last).map((name, index) => (
        <li
          key={name}
          style={{ top: `${AXIS_PX + (seen.first + index) * seen.rowPx}px`, height: `${seen.rowPx}px` }}
        >
          <label title={`${name}: ${TEXTS.timeline.chosen}`}>
            <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
            <span>{name}</span>
          </label>
        </li>
      ))}
    </ul>
  )
}

export function chosenDevices(values: Readonly<Record<string, string>>): readonly string[] {
  return (values.Device ?? '').split(',').filter((name) => name !== '')
}
