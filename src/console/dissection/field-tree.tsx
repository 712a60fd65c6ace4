/** The protocol tree of a packet, with Wireshark's keys. */
import { useEffect, useRef } from 'preact/hooks'
import type { TreeField } from '../../dissector/messages.ts'
import { TEXTS } from '../texts.ts'
import { type ShownField, shownFields } from './shown-fields.ts'

interface FieldTreeProps {
  readonly fields: readonly TreeField[]
  readonly open: ReadonlySet<string>
  readonly onToggle: (path: string, isOpen: boolean) => void
  readonly chosen: TreeField | undefined
  readonly onChoose: (field: TreeField) => void
}

const ID = 'packet-field'

export function FieldTree({ fields, open, onToggle, chosen, onChoose }: FieldTreeProps) {
  const tree = useRef<HTMLDivElement>(null)
  const shown = shownFields(fields, open)
  const place = shown.findIndex(({ field }) => field === chosen)
  useEffect(() => {
    tree.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen])
  return (
    <div
      ref={tree}
      role="tree"
      class="field-tree mono"
      tabIndex={0}
      aria-label={TEXTS.dissection.fields}
      aria-activedescendant={place === -1 ? undefined : `${ID}-${place}`}
      onKeyDown={(event) => onKey(event, shown, place, { onToggle, onChoose })}
    >
      {shown.map((one, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
        // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus, and names the active field
        <div
          key={`${index} ${one.path}`}
          id={`${ID}-${index}`}
          role="treeitem"
          aria-level={one.level}
          aria-expanded={one.field.fields.length === 0 ? undefined : one.isOpen}
          aria-selected={index === place}
          style={{ '--level': one.level }}
          onClick={() => {
            onChoose(one.field)
            if (one.field.fields.length > 0) onToggle(one.path, !one.isOpen)
          }}
        >
          <span class="fold" aria-hidden="true">
            {one.field.fields.length === 0 ? '' : one.isOpen ? '▾' : '▸'}
          </span>
          {one.field.label}
        </div>
      ))}
    </div>
  )
}

function onKey(
  event: KeyboardEvent,
  shown: readonly ShownField[],
  place: number,
  { onToggle, onChoose }: Pick<FieldTreeProps, 'onToggle' | 'onChoose'>,
): void {
  const current = shown[place]
  const go = (index: number): void => {
    const next = shown[Math.min(shown.length - 1, Math.max(0, index))]
    if (next !== undefined) onChoose(next.field)
  }
  const toggle = (isOpen: boolean): void => {
    if (current !== undefined && current.field.fields.length > 0) onToggle(current.path, isOpen)
  }
  switch (event.key) {
    case 'ArrowDown':
      go(place + 1)
      break
    case 'ArrowUp':
      go(place - 1)
      break
    case 'Home':
      go(0)
      break
    case 'End':
      go(shown.length - 1)
      break
    case 'ArrowRight':
      if (current?.isOpen === true) go(place + 1)
      else toggle(true)
      break
    case 'ArrowLeft':
      if (current?.isOpen === true) toggle(false)
      else if (current?.parent !== undefined) go(current.parent)
      break
    case 'Enter':
      toggle(current?.isOpen !== true)
      break
    default:
      return
  }
  event.preventDefault()
}
