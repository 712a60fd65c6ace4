/** A chosen file: the name of its capture, its progress, and the result. */
import { bytesText, countText, packetsText, percentText } from '../../shared/base/amounts.ts'
import { changed, formatPageState } from '../base/page-url.ts'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { viewOfSelection } from '../timeline/shown-view.ts'
import type { ChosenFile, Stored } from './chosen-files.ts'

interface ChosenRowProps {
  readonly row: ChosenFile
  /** Whether files are being sent. */
  readonly isFixed: boolean
  readonly onRename: (name: string) => void
  readonly onRemove: () => void
  /** Called when the user leaves for the capture. */
  readonly onShow: () => void
}

export function ChosenRow({ row, isFixed, onRename, onRemove, onShow }: ChosenRowProps) {
  const { upload: texts } = TEXTS
  const { file, captureName, sentBytes, stored, failure } = row
  return (
    <li data-file={file.name}>
      <div class="file">
        <span>{file.name}</span> <span class="quiet mono">{bytesText(file.size)}</span>
        {stored !== undefined || isFixed ? null : (
          <button type="button" aria-label={`${texts.remove} ${file.name}`} onClick={onRemove}>
            {texts.remove}
          </button>
        )}
      </div>
      {stored === undefined ? (
        <label>
          {texts.name}
          <input
            class="mono"
            value={captureName}
            required
            disabled={isFixed}
            pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
            maxLength={128}
            title={texts.nameRule}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => onRename(event.currentTarget.value)}
          />
        </label>
      ) : (
        <StoredCapture stored={stored} onShow={onShow} />
      )}
      {sentBytes === undefined ? null : <Progress sentBytes={sentBytes} bytes={file.size} />}
      <Failure failure={failure} />
    </li>
  )
}

/** After its last byte, the device reads the file. */
function Progress({ sentBytes, bytes }: { readonly sentBytes: number; readonly bytes: number }) {
  const { upload: texts } = TEXTS
  const isSent = sentBytes >= bytes
  return (
    <p>
      <progress max={1} value={isSent ? undefined : sentBytes / bytes} aria-label={texts.progress} />{' '}
      <span class="mono">{isSent ? texts.storing : percentText(sentBytes / bytes)}</span>
    </p>
  )
}

function StoredCapture({ stored, onShow }: { readonly stored: Stored; readonly onShow: () => void }) {
  const { upload: texts } = TEXTS
  const { StreamName, Packets, Bytes, OutOfTimeRange, Damages, Notes, device } = stored
  const warnings = [
    ...Damages.map(({ Offset, Message }) => texts.damage(countText(Offset), Message)),
    ...(OutOfTimeRange === '0' ? [] : [texts.outOfRange(countText(OutOfTimeRange))]),
  ]
  return (
    <>
      <p>
        <span class="good">{texts.stored(StreamName, device)}</span>{' '}
        <span class="mono">
          {packetsText(Packets)} · {bytesText(Bytes)}
        </span>{' '}
        {Packets === '0' ? null : (
          <a href={lanesOf(stored)} onClick={onShow}>
            {texts.show}
          </a>
        )}
      </p>
      {warnings.map((warning) => (
        <p key={warning} class="warning">
          {warning}
        </p>
      ))}
      {Notes.map((note) => (
        <p key={note} class="quiet">
          {note}
        </p>
      ))}
    </>
  )
}

/** The timeline with the capture selected, and its device as the only lane. */
function lanesOf({ device, StartTS, EndTS }: Stored): string {
  const values = { Device: device, lanes: 'selected', TSBegin: StartTS, TSEnd: EndTS }
  return formatPageState(changed({ view: 'timeline', values }, viewOfSelection(values)))
}
