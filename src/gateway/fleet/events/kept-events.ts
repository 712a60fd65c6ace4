/** An event as text for clients; its number ascends over all devices. */
export interface KeptEvent {
  readonly seq: number
  readonly text: string
}

const EVENTS_MAX = 64
const CHARS_MAX = 65_536

/** The newest events of one device, so that none can push out another one's. */
export class KeptEvents {
  #events: KeptEvent[] = []
  #chars = 0
  /** The newest one that is not kept any more. */
  #lostSeq = 0

  add(event: KeptEvent): void {
    this.#events.push(event)
    this.#chars += event.text.length
    while (this.#events.length > EVENTS_MAX || (this.#chars > CHARS_MAX && this.#events.length > 1))
      this.#drop(this.#events.shift())
  }

  /** Those behind `seq`, the oldest first. */
  after(seq: number): readonly KeptEvent[] {
    return this.#events.filter((event) => event.seq > seq)
  }

  /** Whether one behind `seq` is missing from after(seq). */
  hasLostAfter(seq: number): boolean {
    return this.#lostSeq > seq
  }

  /** Others than these have happened, up to `seq`, that nobody heard. */
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
