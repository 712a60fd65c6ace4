/** A table in a frame of its own, which scrolls by keyboard if it is wider than the window. */
import type { ComponentChildren } from 'preact'
import { TEXTS } from '../texts.ts'

interface DataTableProps {
  readonly label: string
  /** An empty one is above buttons. */
  readonly columns: readonly string[]
  /** Indexes of the columns whose cells are numbers, from 0. */
  readonly numbers?: readonly number[]
  readonly frameClass?: string
  readonly onKeyDown?: (event: KeyboardEvent) => void
  readonly children: ComponentChildren
}

export function DataTable({
  label,
  columns,
  numbers = [],
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
      <table class="cards" style={cardLabels(columns)}>
        <TableHead columns={columns} numbers={numbers} />
        <tbody>{children}</tbody>
      </table>
    </section>
  )
}

/** Must differ from that of the section around it. */
export function tableLabel(label: string): string {
  return `${label}: ${TEXTS.table}`
}

/** For phones, where each row is a card and each cell is labelled with the name of its column. */
function cardLabels(columns: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(columns.map((name, index) => [`--column-${index + 1}`, JSON.stringify(name)]))
}

interface TableHeadProps extends Pick<DataTableProps, 'columns' | 'numbers'> {
  /** Index and direction of the column by which the rows are sorted. */
  readonly sort?: { readonly index: number; readonly isDescending: boolean } | undefined
  /** Called with the index of a column whose heading is clicked; absent: the rows cannot be sorted. */
  readonly onSort?: (index: number) => void
}

export function TableHead({ columns, numbers = [], sort, onSort }: TableHeadProps) {
  return (
    <thead>
      <tr>
        {columns.map((name, index) => (
          <th
            key={name}
            scope="col"
            class={numbers.includes(index) ? 'number' : undefined}
            aria-sort={sort?.index === index ? (sort.isDescending ? 'descending' : 'ascending') : undefined}
          >
            {name === '' ? <span class="hidden">{TEXTS.actions}</span> : null}
            {onSort === undefined ? (
              name
            ) : (
              <button type="button" class="sort" title={TEXTS.sortBy(name)} onClick={() => onSort(index)}>
                {name}
              </button>
            )}
          </th>
        ))}
      </tr>
    </thead>
  )
}
