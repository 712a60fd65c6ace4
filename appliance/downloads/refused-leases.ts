/**
 * A bound by number is enough: who refuses a lease gives its place, one of four, to somebody else.
 * When 4,096 newer ones are refused, all places have changed hands a thousand times, and a request
 * on its way for that long has arrived, or has ended with its connection.
 */
export const REFUSED_LEASES_MAX = 4_096

/**
 * The leases of one user under which no download may begin any more, by name: the last that were refused.
 * In memory only: a restart ends every reader and every connection; what is on its way then is at
 * most what the network held.
 */
export class RefusedLeases {
  /** In the order of refusal. */
  readonly #names = new Set<string>()

  /** A name that is refused again counts as new. */
  add(name: string): void {
    this.#names.delete(name)
    this.#names.add(name)
    const [oldest] = this.#names
    if (oldest !== undefined && this.#names.size > REFUSED_LEASES_MAX) this.#names.delete(oldest)
  }

  has(name: string): boolean {
    return this.#names.has(name)
  }
}
