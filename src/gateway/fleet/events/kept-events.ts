/** An event as text for clients; numbers ascend across all devices. */
export interface KeptEvent {
  readonly seq: number
  readonly text: string
}

const EVENTS_MAX = 64
const CHARS_MAX = 65_536

/** The newest events of one device, kept separately so that no device can displace another's. */
export class KeptEvents {
  #events: KeptEvent[] = []
  #chars = 0
  /** Number of the newest event that is no longer kept. */
  #lostSeq = 0

  add(event: KeptEvent): void {
    this.#events.push(event)
    this.#chars += event.text.length
    while (this.#events.length > EVENTS_MAX || (this.#chars > CHARS_MAX && this.#events.length > 1))
      this.#drop(this.#events.shift())
  }

  /** The events after `seq`, oldest first. */
  after(seq: number): readonly KeptEvent[] {
    return this.#events.filter((event) => event.seq > seq)
  }

  /** Whether an event after `seq` is missing from after(seq). */
  hasLostAfter(seq: number): boolean {
    return this.#lostSeq > seq
  }

  /** Records that other events have happened, up to `seq`, that were not received. */
  loseAll(seq: number): void {
    this.#events = []
    this.#chars = 0
    this.#lostSeq = seq
  }

  #drop(event: KeptEvent | undefined): void {
    this.#chars -= event?.text.length ?? 0
    this.#lostSeq = event?.seq ?? this.#lostSeq
  }
}
