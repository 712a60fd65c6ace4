/** Which devices saw a conversation: what the lines of a search over the fleet say together. */
import type { z } from 'zod'
import type { FLEET_SEEN_LINES } from './seen-answers.ts'

type SeenLine = z.infer<(typeof FLEET_SEEN_LINES)['address' | 'progress' | 'failure' | 'end']>

export class DevicesThatSaw {
  readonly #hosts: readonly string[]
  readonly #seen = new Map<string, Set<string>>()
  /** Devices whose answer leaves it open. */
  readonly #open = new Set<string>()

  /** `hosts`: the addresses of the conversation, of which a device must have seen all, as the answer writes them. */
  constructor(hosts: readonly string[]) {
    this.#hosts = hosts
  }

  take(line: SeenLine): void {
    if ('end' in line) {
      const { unanswered, partial, otherLinkTypes } = line
      for (const device of [...unanswered, ...partial, ...otherLinkTypes.map(({ device }) => device)])
        this.#open.add(device)
    } else if ('address' in line) {
      const addresses = this.#seen.get(line.device) ?? new Set()
      this.#seen.set(line.device, addresses.add(line.address))
    }
  }

  /** Those that may have packets of it, sorted. */
  get names(): readonly string[] {
    const saw = [...this.#seen].filter(([, addresses]) => this.#hosts.every((host) => addresses.has(host)))
    return [...new Set([...saw.map(([device]) => device), ...this.#open])].toSorted()
  }
}
