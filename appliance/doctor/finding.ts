/** Severity of a finding: `problem` = packets are lost or wrong, or there is no capture at all. */
export type FindingLevel = 'ok' | 'warning' | 'problem'

export interface Finding {
  /** The object of the check: a port, "kernel", "store" ... */
  readonly subject: string
  readonly check: string
  readonly level: FindingLevel
  readonly detail: string
  /** The command or setting that fixes it; empty = nothing to fix. */
  readonly fix: string
}

export interface Remedy {
  readonly detail: string
  readonly fix: string
}

/** Findings about one subject. */
export class FindingList {
  readonly #subject: string
  readonly findings: Finding[] = []

  constructor(subject: string) {
    this.#subject = subject
  }

  ok(check: string, detail: string): void {
    this.#add('ok', check, { detail, fix: '' })
  }

  warn(check: string, remedy: Remedy): void {
    this.#add('warning', check, remedy)
  }

  problem(check: string, remedy: Remedy): void {
    this.#add('problem', check, remedy)
  }

  #add(level: FindingLevel, check: string, { detail, fix }: Remedy): void {
    this.findings.push({ subject: this.#subject, check, level, detail, fix })
  }
}
