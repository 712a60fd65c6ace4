/** Uploads files to a device, one after another, and shows what became of each. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { bytesText } from '../../shared/base/amounts.ts'
import { messageOf } from '../base/ask-gateway.ts'
import { useAction } from '../base/asked.ts'
import { type DeviceReport, useDevices } from '../base/devices.ts'
import { Dialog } from '../parts/dialog.tsx'
import { TEXTS } from '../texts.ts'
import { type ChosenFile, sendChosen, withFiles } from './chosen-files.ts'
import { ChosenRow } from './chosen-row.tsx'

const DEVICES_EVERY_MS = 10_000

interface UploadDialogProps {
  readonly device: string | undefined
  /** The files that were dropped last. */
  readonly dropped: readonly File[]
  readonly onStored: () => void
  readonly onClose: () => void
}

export function UploadDialog({ device: given, dropped, onStored, onClose }: UploadDialogProps) {
  const { upload: texts } = TEXTS
  const devices = useDevices(DEVICES_EVERY_MS)
  const [wanted, setWanted] = useState(given ?? '')
  const [chosen, setChosen] = useState<readonly ChosenFile[]>([])
  const add = (files: readonly File[]): void => setChosen((before) => withFiles(before, files))
  useEffect(() => add(dropped), [dropped])
  const takers = (devices.value ?? []).filter(takesUploads)
  // The only one needs no choice.
  const device = takers.length === 1 && wanted === '' ? (takers[0]?.name ?? '') : wanted
  const { upload, isBusy, failure, cancel } = useUpload(setChosen, onStored)
  const left = chosen.filter(({ stored }) => stored === undefined)
  const isDone = chosen.length > 0 && left.length === 0
  return (
    <Dialog
      title={texts.title}
      action={isDone ? undefined : texts.button(left.length)}
      hold={isBusy ? { label: texts.cancel, onClick: cancel } : undefined}
      isBusy={isBusy}
      failure={failure}
      onAnswer={() => upload(left, device)}
      onClose={onClose}
    >
      <label>
        {texts.device}
        <select
          value={device}
          required
          disabled={isBusy}
          onChange={(event) => setWanted(event.currentTarget.value)}
        >
          <option value="">{texts.chooseDevice}</option>
          {[...Map.groupBy(takers, siteOf)].map(([site, members]) => (
            <optgroup key={site} label={site}>
              {members.map(({ name, reachable }) => (
                <option key={name} value={name}>
                  {name} {reachable === false ? `(${TEXTS.fleet.down})` : ''}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
      {devices.failure === undefined ? null : <p class="bad">{messageOf(devices.failure)}</p>}
      <label>
        {texts.files}
        <input
          type="file"
          multiple
          // Files that were chosen earlier are in the list below.
          required={chosen.length === 0}
          onChange={(event) => {
            add([...(event.currentTarget.files ?? [])])
            event.currentTarget.value = ''
          }}
        />
        <span class="quiet">{texts.formats}</span>
      </label>
      {chosen.length === 0 ? null : (
        <ul class="uploads" aria-label={texts.files}>
          {chosen.map((row) => (
            <ChosenRow
              key={row.key}
              row={row}
              isFixed={isBusy}
              onRename={(captureName) => setChosen(changedRow(row.key, { captureName }))}
              onRemove={() => setChosen((before) => before.filter(({ key }) => key !== row.key))}
              onShow={onClose}
            />
          ))}
        </ul>
      )}
      <p class="hidden" role="status">
        {isDone ? texts.allStored(chosen.length) : isBusy ? texts.sending(bytesText(sizeOf(left))) : ''}
      </p>
    </Dialog>
  )
}

type Update = (next: (before: readonly ChosenFile[]) => readonly ChosenFile[]) => void

/** Sends the files one after another; one that fails does not stop the others. */
function useUpload(setChosen: Update, onStored: () => void) {
  const { isBusy, failure, run } = useAction()
  const running = useRef(new AbortController())
  useEffect(() => () => running.current.abort(), [])
  useEffect(() => {
    if (!isBusy) return
    const warn = (event: Event): void => event.preventDefault()
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [isBusy])
  const sendOne = async (row: ChosenFile, device: string, signal: AbortSignal): Promise<void> => {
    const change = (changes: Partial<ChosenFile>): void => setChosen(changedRow(row.key, changes))
    change({ sentBytes: 0, failure: undefined })
    try {
      const onSent = (sentBytes: number): void => change({ sentBytes })
      const stored = await sendChosen(row, { device, onSent, signal })
      change({ sentBytes: undefined, stored })
      onStored()
    } catch (error) {
      change({ sentBytes: undefined, failure: signal.aborted ? undefined : error })
    }
  }
  const upload = (rows: readonly ChosenFile[], device: string): void => {
    running.current = new AbortController()
    const { signal } = running.current
    run(async () => {
      for (const row of rows) if (!signal.aborted) await sendOne(row, device, signal)
    })
  }
  return { upload, isBusy, failure, cancel: () => running.current.abort() }
}

function changedRow(key: number, changes: Partial<ChosenFile>) {
  return (before: readonly ChosenFile[]): readonly ChosenFile[] =>
    before.map((row) => (row.key === key ? { ...row, ...changes } : row))
}

/** A third-party device has no uploads; one whose kind is not known yet may have them. */
function takesUploads({ kind }: DeviceReport): boolean {
  return kind === null || kind === 'capfleet'
}

function siteOf({ site }: DeviceReport): string {
  return site ?? TEXTS.fleet.noSite
}

function sizeOf(rows: readonly ChosenFile[]): number {
  return rows.reduce((sum, { file }) => sum + file.size, 0)
}
