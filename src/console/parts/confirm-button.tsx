/** A button whose action must be confirmed, and may require some input. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useAction } from '../base/asked.ts'
import { Dialog } from './dialog.tsx'

interface ConfirmButtonProps {
  readonly label: string
  /** The object of the action, shown next to the label in the dialog's title. */
  readonly subject?: string
  readonly isDangerous?: boolean
  readonly action: () => Promise<void>
  /** The question. */
  readonly children: ComponentChildren
}

export function ConfirmButton({ label, subject, isDangerous = false, action, children }: ConfirmButtonProps) {
  const [isAsking, setAsking] = useState(false)
  const { isBusy, failure, run } = useAction()
  const confirmed = async (): Promise<void> => {
    await action()
    setAsking(false)
  }
  return (
    <>
      <button type="button" onClick={() => setAsking(true)}>
        {label}
      </button>
      {isAsking ? (
        <Dialog
          title={subject === undefined ? label : `${label}: ${subject}`}
          action={label}
          isDangerous={isDangerous}
          isBusy={isBusy}
          failure={failure}
          onAnswer={() => run(confirmed)}
          onClose={() => setAsking(false)}
        >
          {children}
        </Dialog>
      ) : null}
    </>
  )
}
