/** A modal question. Escape and the browser's "back" mean no. */
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { TEXTS } from '../texts.ts'
import { Failure } from './notice.tsx'

interface DialogProps {
  readonly title: string
  /** undefined: it is done, and there is nothing left to answer. */
  readonly action: string | undefined
  readonly isDangerous?: boolean
  readonly isBusy: boolean
  /** Replaces the button that closes, while closing would end something that runs. */
  readonly hold?: { readonly label: string; readonly onClick: () => void } | undefined
  readonly failure: unknown
  readonly onAnswer: () => void
  readonly onClose: () => void
  readonly children: ComponentChildren
}

export function Dialog({
  title,
  action,
  isDangerous = false,
  isBusy,
  hold,
  failure,
  onAnswer,
  onClose,
  children,
}: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  // A normal effect would be cleaned up only after the dialog is gone.
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    // However it is closed, the focus returns to where it was.
    return () => dialog?.close()
  }, [])
  return (
    <dialog
      ref={element}
      onClose={onClose}
      onCancel={(event) => {
        if (hold !== undefined) event.preventDefault()
      }}
      aria-labelledby="dialog-title"
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onAnswer()
        }}
      >
        <h2 id="dialog-title">{title}</h2>
        {children}
        <Failure failure={failure} />
        <div class="actions">
          <button type="button" onClick={hold?.onClick ?? onClose}>
            {hold?.label ?? (action === undefined ? TEXTS.close : TEXTS.back)}
          </button>
          {action === undefined ? null : (
            <button type="submit" class={isDangerous ? 'danger' : 'primary'} disabled={isBusy}>
              {isBusy ? TEXTS.control.busy : action}
            </button>
          )}
        </div>
      </form>
    </dialog>
  )
}
