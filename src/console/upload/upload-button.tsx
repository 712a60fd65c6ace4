/** Opens the dialog for uploads, also when files are dropped on the page. */
import { useEffect, useState } from 'preact/hooks'
import { may } from '../base/session.ts'
import { useSurroundings } from '../parts/context.ts'
import { TEXTS } from '../texts.ts'
import { UploadDialog } from './upload-dialog.tsx'

interface UploadButtonProps {
  /** The device that is chosen at first. */
  readonly device?: string
  /** Whether it takes the files that are dropped anywhere on the page; at most one button of a view does. */
  readonly takesDrops?: boolean
  /** Called after each file that has become a capture. */
  readonly onStored?: () => void
}

/** Nothing for users who may not upload; the gateway also rejects uploads of users with a forced filter. */
export function UploadButton(props: UploadButtonProps) {
  const { session } = useSurroundings()
  if (!may(session, 'capture:upload') || session.bounds.filters.length > 0) return null
  return <ShownButton {...props} />
}

function ShownButton({ device, takesDrops = false, onStored }: UploadButtonProps) {
  const [isOpen, setOpen] = useState(false)
  const [dropped, setDropped] = useState<readonly File[]>([])
  useEffect(() => {
    if (!takesDrops) return
    const done = new AbortController()
    // Without these, the browser would leave the page and open the file.
    document.addEventListener('dragover', (event) => hasFiles(event) && event.preventDefault(), {
      signal: done.signal,
    })
    const take = (event: DragEvent): void => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setDropped([...(event.dataTransfer?.files ?? [])])
      setOpen(true)
    }
    document.addEventListener('drop', take, { signal: done.signal })
    return () => done.abort()
  }, [takesDrops])
  const close = (): void => {
    setOpen(false)
    setDropped([])
  }
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        {TEXTS.upload.open}
      </button>
      {isOpen ? (
        <UploadDialog device={device} dropped={dropped} onStored={() => onStored?.()} onClose={close} />
      ) : null}
    </>
  )
}

function hasFiles({ dataTransfer }: DragEvent): boolean {
  return dataTransfer?.types.includes('Files') === true
}
