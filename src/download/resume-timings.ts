/** How a device that broke off is asked again. */
export interface ResumeTimings {
  /** So often at most within `withinMs`. */
  readonly attempts: number
  readonly withinMs: number
  /** Before the second time; doubled each time after. The first is at once. */
  readonly pauseMs: number
}

export const RESUME_TIMINGS: ResumeTimings = { attempts: 5, withinMs: 60_000, pauseMs: 2_000 }
