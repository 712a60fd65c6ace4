/** The devices that the user ticks to start or stop captures on all of them. */
import { useMemo, useState } from 'preact/hooks'
import { may } from '../base/session.ts'
import { useSurroundings } from '../parts/context.ts'
import { TEXTS } from '../texts.ts'
import type { ControlRequest } from './capture-control.tsx'

export interface DeviceChoice {
  readonly chosen: ReadonlySet<string>
  readonly choose: (names: readonly string[], isChosen: boolean) => void
}

/** undefined for a user who may not control captures. */
export function useDeviceChoice(): DeviceChoice | undefined {
  const { session } = useSurroundings()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const choice = useMemo(
    () => ({
      chosen,
      choose: (names: readonly string[], isChosen: boolean) =>
        setChosen((before) => (isChosen ? before.union(new Set(names)) : before.difference(new Set(names)))),
    }),
    [chosen],
  )
  return may(session, 'capture:control') ? choice : undefined
}

interface ChoiceBoxProps {
  readonly choice: DeviceChoice | undefined
  readonly label: string
  /** One device, or all devices of a site. */
  readonly names: readonly string[]
}

export function ChoiceBox({ choice, label, names }: ChoiceBoxProps) {
  if (choice === undefined) return null
  const count = names.filter((name) => choice.chosen.has(name)).length
  const isChosen = count === names.length
  return (
    <input
      type="checkbox"
      class="choice"
      aria-label={`${TEXTS.fleet.choose}: ${label}`}
      checked={isChosen}
      indeterminate={count > 0 && !isChosen}
      onChange={() => choice.choose(names, !isChosen)}
    />
  )
}

interface ChoiceBarProps {
  readonly choice: DeviceChoice
  /** The devices that match the search. */
  readonly shown: readonly string[]
  readonly onControl: (request: ControlRequest) => void
}

export function ChoiceBar({ choice: { chosen, choose }, shown, onControl }: ChoiceBarProps) {
  const { fleet: texts } = TEXTS
  const devices = [...chosen].toSorted()
  return (
    <div class="controls">
      <button
        type="button"
        disabled={shown.every((name) => chosen.has(name))}
        onClick={() => choose(shown, true)}
      >
        {texts.chooseShown}
      </button>
      <span class="quiet" role="status">
        <span class="mono">{chosen.size}</span> {texts.chosen}
      </span>
      {chosen.size === 0 ? null : (
        <>
          <button type="button" onClick={() => choose(devices, false)}>
            {texts.chooseNone}
          </button>
          <button type="button" onClick={() => onControl({ action: 'start', devices })}>
            {texts.startChosen}
          </button>
          <button type="button" onClick={() => onControl({ action: 'stop', devices })}>
            {texts.stopChosen}
          </button>
        </>
      )}
    </div>
  )
}
