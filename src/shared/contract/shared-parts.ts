/**
 * Parts of a description that are used in many places, such as a parameter: each is included once, under a name. If a
 * name is used for different parts, the most frequent one gets it; the others are inlined.
 */
export class SharedParts {
  readonly #pointer: string
  /** By folded name, then by the part's own text: names that differ only in case are one name in many languages. */
  readonly #uses = new Map<string, Map<string, Use>>()

  /** `kind`: of the parts, as in `components`. */
  constructor(kind: 'parameters' | 'headers') {
    this.#pointer = `#/components/${kind}/`
  }

  /** What replaces the part. Decided when the document is written: all uses must be known by then. */
  use(name: string, part: object): object {
    const variants = this.#uses.get(folded(name)) ?? new Map<string, Use>()
    this.#uses.set(folded(name), variants)
    const text = JSON.stringify(part, (_key, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    )
    const use = variants.get(text) ?? { name, part, count: 0 }
    variants.set(text, use)
    use.count++
    return { toJSON: () => (isShared(use, variants) ? { $ref: this.#pointer + name } : part) }
  }

  /** The shared parts, by name. */
  get components(): Record<string, object> {
    const variants = [...this.#uses.values()]
    const shared = variants.flatMap((uses) => [...uses.values()].filter((use) => isShared(use, uses)))
    return Object.fromEntries(shared.map(({ name, part }) => [name, part]))
  }
}

interface Use {
  readonly name: string
  readonly part: object
  count: number
}

function isShared(use: Use, variants: ReadonlyMap<string, Use>): boolean {
  const [most] = [...variants.values()].toSorted((a, b) => b.count - a.count)
  return use === most && use.count > 1
}

/** Equal for names that languages with other naming rules turn into the same identifier. */
export function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
}
