/** Start and stop of captures, behind a question that names the devices. */
import { useState } from 'preact/hooks'
import { answered, gateway, Problem } from '../base/ask-gateway.ts'
import { useAction } from '../base/asked.ts'
import { Dialog } from '../parts/dialog.tsx'
import { TEXTS } from '../texts.ts'

export interface ControlRequest {
  readonly action: 'start' | 'stop'
  readonly devices: readonly string[]
}

interface CaptureControlProps {
  readonly request: ControlRequest
  readonly onClose: () => void
}

export function CaptureControl({ request: { action, devices }, onClose }: CaptureControlProps) {
  const { control: texts } = TEXTS
  const [name, setName] = useState('')
  const { isBusy, failure, run } = useAction()
  const isStart = action === 'start'
  const tell = async (): Promise<void> => {
    await (isStart ? startCaptures(devices, name) : stopCaptures(devices))
    onClose()
  }
  return (
    <Dialog
      title={isStart ? texts.startTitle : texts.stopTitle}
      action={isStart ? texts.start : texts.stop}
      isDangerous={!isStart}
      isBusy={isBusy}
      failure={failure}
      onAnswer={() => run(tell)}
      onClose={onClose}
    >
      <p>{isStart ? texts.startText : texts.stopText}</p>
      <ul class="named">
        {devices.map((device) => (
          <li key={device}>{device}</li>
        ))}
      </ul>
      {isStart ? (
        <label>
          {texts.name}
          <input
            value={name}
            autocomplete="off"
            pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
      ) : null}
    </Dialog>
  )
}

async function startCaptures(devices: readonly string[], name: string): Promise<void> {
  const query = { Device: devices.join(','), ...(name === '' ? {} : { StreamName: name }) }
  refuseFailures(await answered(gateway.POST('/sysmaster/capture_start', { params: { query } })))
}

async function stopCaptures(devices: readonly string[]): Promise<void> {
  refuseFailures(
    await answered(
      gateway.POST('/sysmaster/capture_stop', { params: { query: { Device: devices.join(',') } } }),
    ),
  )
}

/** Each device answers for itself. */
function refuseFailures(answer: unknown): void {
  const { Devices } = answer as {
    readonly Devices: readonly {
      readonly Device: string
      readonly error?: { readonly code: string; readonly detail: string }
    }[]
  }
  const failed = Devices.filter(({ error }) => error !== undefined)
  if (failed.length === 0) return
  const detail = failed.map(({ Device, error }) => `${Device}: ${error?.detail}`).join(' ')
  throw new Problem({ status: 207, code: failed[0]?.error?.code ?? '', detail })
}
