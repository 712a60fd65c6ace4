/**
 * How an answer ended: complete; incomplete, because a device did not answer or not completely; cut, for example because
 * the caller lost access; left by the client; or answered with an error.
 */
export const LINES_OUTCOMES = ['complete', 'incomplete', 'cut', 'client-gone', 'refused'] as const
export type LinesOutcome = (typeof LINES_OUTCOMES)[number]
