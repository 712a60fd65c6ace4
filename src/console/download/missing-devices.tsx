/** Devices that do not answer make a download from all devices fail: offers one from the others. */
import { listText } from '../../shared/base/list-text.ts'
import type { Schemas } from '../base/ask-gateway.ts'
import { type Changes, changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { TEXTS } from '../texts.ts'

interface MissingDevicesProps {
  readonly missing: readonly string[]
  /** Devices of the selection, as in the estimate; empty if there is no estimate. */
  readonly devices: Schemas['FleetEstimate']['devices']
}

/** Maximum number of names in a selection. */
const NAMES_MAX = 64

export function MissingDevices({ missing, devices }: MissingDevicesProps) {
  const { download: texts } = TEXTS
  const { values } = usePageState()
  const others = devices.map(({ device }) => device).filter((name) => !missing.includes(name))
  if (missing.length === 0 || (devices.length > 0 && others.length === 0)) return null
  const names = listText(missing)
  const isPartial = values.OnError === 'partial'
  const show = (changes: Changes) => (): void => showState(changed(currentState(), changes), { isStep: true })
  return (
    <div class="missing-devices" role="status">
      <p>{isPartial ? texts.withoutMissing(names) : texts.wouldFail}</p>
      <div class="actions">
        <button
          type="button"
          aria-pressed={isPartial}
          onClick={show({ OnError: isPartial ? undefined : 'partial' })}
        >
          {texts.continueWithout}
        </button>
        {others.length === 0 || others.length > NAMES_MAX ? null : (
          <button type="button" onClick={show({ Device: others.join(',') })}>
            {texts.leaveOut(names)}
          </button>
        )}
      </div>
    </div>
  )
}
