/** The protocol tree as a list of its visible fields. */
import type { TreeField } from '../../dissector/messages.ts'

export interface ShownField {
  readonly field: TreeField
  readonly level: number
  /** The same for the same field of another packet, so that what was opened stays open. */
  readonly path: string
  /** Index of the field that contains it. */
  readonly parent: number | undefined
  readonly isOpen: boolean
}

/** `open`: paths of the fields whose inner fields are visible. */
export function shownFields(fields: readonly TreeField[], open: ReadonlySet<string>): readonly ShownField[] {
  const shown: ShownField[] = []
  const show = (
    level: number,
    inner: readonly TreeField[],
    parent: number | undefined,
    above: string,
  ): void => {
    for (const field of inner) {
      const path = `${above}/${nameOf(field)}`
      const isOpen = field.fields.length > 0 && open.has(path)
      shown.push({ field, level, path, parent, isOpen })
      if (isOpen) show(level + 1, field.fields, shown.length - 1, path)
    }
  }
  show(1, fields, undefined, '')
  return shown
}

function nameOf({ filter, label }: TreeField): string {
  const [name = ''] = filter.split(' ')
  return name === '' || name.startsWith('frame[') ? (label.split(/[:,]/)[0] ?? '') : name
}

/** The innermost field that was read from this byte, and the paths of those around it. */
export function fieldAt(
  fields: readonly TreeField[],
  place: { readonly source: number; readonly at: number },
  above: readonly string[] = [''],
): { readonly field: TreeField; readonly open: readonly string[] } | undefined {
  // Later fields are more particular than earlier ones of the same bytes.
  for (const field of fields.toReversed()) {
    const path = `${above.at(-1)}/${nameOf(field)}`
    const inner = fieldAt(field.fields, place, [...above, path])
    if (inner !== undefined) return inner
    const { source, start, length } = field
    if (source === place.source && place.at >= start && place.at < start + length)
      return { field, open: above.slice(1) }
  }
  return undefined
}
