/** Starts and stops captures, after a confirmation that names the devices; then shows the result for each. */
import { useEffect, useState } from 'preact/hooks'
import { BASE_NAME_RULE } from '../../shared/query/capture-name-rule.ts'
import { answered, gateway, Problem, type Schemas } from '../base/ask-gateway.ts'
import { useAction } from '../base/asked.ts'
import { Dialog } from '../parts/dialog.tsx'
import { TEXTS } from '../texts.ts'

export interface ControlRequest {
  readonly action: 'start' | 'stop'
  readonly devices: readonly string[]
}

/** Names of 64 characters fit into the maximum length of a device selection (4,096 bytes). */
const DEVICES_PER_CALL = 60

interface CaptureControlProps {
  readonly request: ControlRequest
  readonly onClose: () => void
}

export function CaptureControl({ request, onClose }: CaptureControlProps) {
  const { control: texts } = TEXTS
  const { action, devices } = request
  const [name, setName] = useState('')
  const [replies, setReplies] = useState<ReadonlyMap<string, Reply>>(new Map())
  const [isDone, setDone] = useState(false)
  const { isBusy, failure, run } = useAction()
  const isStart = action === 'start'
  const [leaving] = useState(() => new AbortController())
  useEffect(() => () => leaving.abort(), [])
  const tell = async (): Promise<void> => {
    for await (const told of tellDevices(request, name, leaving.signal))
      setReplies((before) => new Map([...before, ...told.map((reply) => [reply.Device, reply] as const)]))
    setDone(true)
  }
  return (
    <Dialog
      title={isDone ? texts.outcome : isStart ? texts.startTitle : texts.stopTitle}
      action={isDone ? undefined : isStart ? texts.start : texts.stop}
      isDangerous={!isStart}
      isBusy={isBusy}
      failure={failure}
      onAnswer={() => run(tell)}
      onClose={onClose}
    >
      {isDone ? (
        <Outcome replies={[...replies.values()]} />
      ) : (
        <p>{isStart ? texts.startText : texts.stopText}</p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <ul class="named" tabIndex={0} aria-label={texts.devices}>
        {devices.map((device) => (
          <li key={device} data-device={device}>
            {device} <Told reply={replies.get(device)} isStart={isStart} />
          </li>
        ))}
      </ul>
      {isStart && !isDone ? (
        <label>
          {texts.name}
          <input
            value={name}
            placeholder={texts.ownName}
            autocomplete="off"
            pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
            maxlength={64}
            title={BASE_NAME_RULE}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
      ) : null}
    </Dialog>
  )
}

type Reply = Schemas['FleetReplies']['Devices'][number]

/**
 * Each device has its own result; a failure of a whole call counts for each of its devices. Devices that were not
 * called when the signal aborts are left alone.
 */
async function* tellDevices(
  { action, devices }: ControlRequest,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<readonly Reply[]> {
  for (let first = 0; first < devices.length && !signal.aborted; first += DEVICES_PER_CALL) {
    const asked = devices.slice(first, first + DEVICES_PER_CALL)
    const query = { Device: asked.join(','), ...(name === '' ? {} : { StreamName: name }) }
    const calls = {
      start: () => gateway.POST('/sysmaster/capture_start', { params: { query }, signal }),
      stop: () =>
        gateway.POST('/sysmaster/capture_stop', { params: { query: { Device: query.Device } }, signal }),
    }
    try {
      yield (await answered(calls[action]())).Devices
    } catch (error) {
      if (!(error instanceof Problem) || error.param !== undefined) throw error
      const { status: Status, code, message: detail } = error
      yield asked.map((Device) => ({ Device, Status, error: { code, detail } }))
    }
  }
}

function Outcome({ replies }: { readonly replies: readonly Reply[] }) {
  const { control: texts } = TEXTS
  const failed = replies.filter((reply) => 'error' in reply).length
  const warned = replies.filter((reply) => warningOf(reply) !== '').length
  if (failed === 0 && warned > 0)
    return (
      <p class="warning" role="alert">
        {texts.didWithWarnings(warned, replies.length)}
      </p>
    )
  if (failed === 0)
    return (
      <p class="good" role="status">
        {texts.allDid}
      </p>
    )
  return (
    <p class="failure" role="alert">
      {failed === replies.length ? texts.noneDid : texts.someDidNot(failed, replies.length)}
    </p>
  )
}

function Told({ reply, isStart }: { readonly reply: Reply | undefined; readonly isStart: boolean }) {
  const { control: texts } = TEXTS
  if (reply === undefined) return null
  if ('error' in reply) return <span class="bad">{reply.error.detail}</span>
  const warning = warningOf(reply)
  return (
    <>
      <span class="good">
        {isStart ? texts.started : texts.stopped} {captureName(reply.Body)}
      </span>
      {warning === '' ? null : <p class="warning">{warning}</p>}
    </>
  )
}

/** What the device reports although it succeeded, such as that the capture gets no packets. */
function warningOf(reply: Reply): string {
  const warning =
    'error' in reply ? undefined : (reply.Body as { readonly Warning?: unknown } | null)?.Warning
  return typeof warning === 'string' ? warning : ''
}

/** The full name, which has the start time after the given one. */
function captureName(body: unknown): string {
  const name = (body as { readonly StreamName?: unknown } | null)?.StreamName
  return typeof name === 'string' ? name : ''
}
