/** The names next to the lanes, each with the scale of its lane; a tick selects a device for the download. */
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import type { SeenRows } from '../parts/virtual-rows.ts'
import { TEXTS } from '../texts.ts'
import { AXIS_PX } from './draw-axis.ts'
import type { LaneActivity } from './lane-activity.ts'
import { bytesOverTime, highestBytes } from './lane-values.ts'
import type { TimeView } from './time-view.ts'

interface LaneNamesProps {
  readonly names: readonly string[]
  readonly seen: SeenRows
  readonly activity: ReadonlyMap<string, LaneActivity>
  readonly view: TimeView
}

export function LaneNames({ names, seen, activity, view }: LaneNamesProps) {
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
            <span class="name">{name}</span>
          </label>
          <Scale activity={activity.get(name)} view={view} />
        </li>
      ))}
    </ul>
  )
}

/** The value of the highest part of the lane. */
function Scale({ activity, view }: { readonly activity: LaneActivity | undefined; readonly view: TimeView }) {
  const highest = activity === undefined ? 0 : highestBytes(activity, view)
  if (activity === undefined || highest === 0) return null
  return (
    <span class="scale" title={TEXTS.timeline.scale}>
      <span class="most">{TEXTS.timeline.most} </span>
      {bytesOverTime(highest, activity.bucketNs)}
    </span>
  )
}

export function chosenDevices(values: Readonly<Record<string, string>>): readonly string[] {
  return (values.Device ?? '').split(',').filter((name) => name !== '')
}
