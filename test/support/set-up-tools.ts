/**
 * Skip reason for a test that needs a tool installed by the set-up: false if it is there. In continuous integration
 * (CI=true) no such test is skipped: it fails.
 */
export function skipWithout(isThere: boolean, reason: string): string | false {
  return isThere || process.env.CI === 'true' ? false : reason
}
