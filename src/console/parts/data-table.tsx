/** A table in a frame of its own, which scrolls by keys where it is wider than the window. */
import type { ComponentChildren } from 'preact'
import { TEXTS } from '../texts.ts'

interface DataTableProps {
  readonly label: string
  /** An empty one stands above buttons. */
  readonly columns: readonly string[]
  readonly isLive?: boolean
  readonly frameClass?: string
  readonly onKeyDown?: (event: KeyboardEvent) => void
  readonly children: ComponentChildren
}

export function DataTable({
  label,
  columns,
  isLive = false,
  frameClass = '',
  onKeyDown,
  children,
}: DataTableProps) {
  return (
    <section
      class={`table-scroller ${frameClass}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
      tabIndex={0}
      aria-label={tableLabel(label)}
      onKeyDown={onKeyDown}
    >
      <table>
        <TableHead columns={columns} />
        <tbody aria-live={isLive ? 'polite' : undefined}>{children}</tbody>
      </table>
    </section>
  )
}

/** Not that of the section around it. */
export function tableLabel(label: string): string {
  return `${label}: ${TEXTS.table}`
}

export function TableHead({ columns }: Pick<DataTableProps, 'columns'>) {
  return (
    <thead>
      <tr>
        {columns.map((name) => (
          <th key={name} scope="col">
            {name === '' ? <span class="hidden">{TEXTS.actions}</span> : name}
          </th>
        ))}
      </tr>
    </thead>
  )
}
